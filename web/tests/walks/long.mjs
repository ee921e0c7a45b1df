// A conversation of many entries: what the page reads and draws of it is bounded, whatever its length.
import { Walker, drawn, expect } from '../browser.mjs';
import { long } from '../fixtures.mjs';

export default async function longLog(browser) {
  const w = await Walker.begin(browser);
  const { page } = w;
  const n = Number(process.env.INSPECTOR_ENTRIES || 5000);

  await w.check('a long log: few rows exist, few requests are made, jump, find, and places that stay', async () => {
    const id = await long(n);
    let asked = 0;
    w.context.on('request', (r) => (asked += new URL(r.url()).pathname.endsWith('/entries') ? 1 : 0));
    const bounded = async (when, requests) => {
      const rows = await page.locator('article.e').count();
      const nodes = await page.evaluate(() => document.querySelectorAll('*').length);
      expect(rows < 120 && nodes < 3000, `${when}: ${rows} rows and ${nodes} elements exist`);
      expect(asked <= requests, `${when}: entries were asked for ${asked} times, which is more than ${requests}`);
    };
    await w.open(`/conversations/${id}`);
    await page.locator(`#e${n}`).waitFor();
    await bounded('at its end', 3);
    await page.keyboard.press('g');
    await page.locator('#e1').waitFor();
    await bounded('at its begin', 6);
    const middle = Math.floor(n / 2);
    await w.open(`/conversations/${id}?seq=${middle}`);
    await page.locator(`#e${middle}`).waitFor();
    await drawn(page);
    const box = page.getByRole('region', { name: 'Log' });
    const from = () => page.locator(`#e${middle}`).evaluate((e) => e.getBoundingClientRect().top - e.closest('.scroller').getBoundingClientRect().top);
    const place = await from();
    expect(place >= 0 && place < 400, `the entry of the address is at ${place} px of the log`);

    // 24 000 px, as fast as frames come: pieces of the log that are only passed are not all read.
    await box.evaluate(async (b) => {
      for (let i = 0; i < 60; i++) {
        b.scrollTop += 400;
        await new Promise((r) => requestAnimationFrame(r));
      }
    });
    await page.locator('article.e').first().waitFor();
    await bounded('after scrolling', 18);
    await box.evaluate((b) => (b.scrollTop = b.scrollHeight / 4));
    await page.waitForFunction(() => !document.querySelector('.e.skel') && document.querySelector('article.e'));
    await bounded('after a long way', 24);

    await page.getByRole('button', { name: /Find/ }).click();
    await page.getByLabel('Find in this conversation').fill('pangolin');
    await page.locator('.hits mark').first().click();
    await page.locator('#e777').waitFor();
    await page.getByText('findme-pangolin').first().waitFor();
    await bounded('after finding', 28);
  });
  await w.end();
}
