// A new user before a server that nothing was configured for.
import { Walker, axe, call, expect } from '../browser.mjs';

export default async function newcomer(browser) {
  const w = await Walker.begin(browser, { server: process.env.INSPECTOR_NEW_URL });
  const { page } = w;

  await w.check('an empty server invites', async () => {
    await w.open('/');
    await page.getByText('No conversations yet').waitFor();
    await axe(page, 'the empty list');
  });

  // Counts what a person does: the address is opened once, and the page is never loaded again.
  await page.addInitScript(() => {
    globalThis.clicks_ = 0;
    addEventListener('click', (e) => (globalThis.clicks_ += e.isTrusted && e.detail ? 1 : 0), true);
  });
  await w.check('a new user talks, sees what the second answer was shown, and what 500 tokens would cut', async () => {
    const begun = Date.now();
    await w.open('/');
    await page.getByRole('button', { name: 'New', exact: true }).click();
    await page.getByText('Nothing was said yet').waitFor();
    for (const text of ['My dog is called Rex.', 'What is my dog called?']) {
      await w.send(text);
      await w.row(text).first().waitFor();
      await page.getByText(text === 'What is my dog called?' ? /shown 3 messages/ : /shown 1 message/).waitFor();
      await w.answered(); // the log has its request then
    }
    await page.getByRole('heading', { name: 'My dog is called Rex.', exact: true }).waitFor();
    await page.getByRole('link', { name: 'Request', exact: true }).last().click();
    await page.getByText('hash proved').waitFor();
    await page.getByRole('button', { name: /What if/ }).click();
    await page.getByLabel('Tokens at most').fill('500');
    await page.getByText('not sent: what would be').waitFor();
    await page.getByText(/left out/).first().waitFor();
    const clicks = await page.evaluate(() => globalThis.clicks_);
    console.log(`# a new user: ${clicks} clicks, two messages and one number typed, ${((Date.now() - begun) / 1000).toFixed(1)} s with a program's hands`);
    expect(clicks <= 3, `it took ${clicks} clicks`);
    expect(/max_tokens=500/.test(page.url()), `the address has no limit: ${page.url()}`);
  });

  await w.check('on a phone, what is written in the picture of the log stays in its place', async () => {
    const { id } = await call('POST', '/api/conversations', { title: 'A long beginning' }, { server: w.base });
    const entries = Array.from({ length: 13 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: 'word '.repeat(i ? 20 : 600) }));
    await call('POST', `/api/conversations/${id}/entries`, { entries }, { server: w.base });
    await page.setViewportSize({ width: 390, height: 844 });
    await w.open(`/conversations/${id}/context?view=continuity&max_messages=5`);
    await page.getByText('left out', { exact: false }).first().waitFor();
    const wide = await page.locator('.fl rect.f-dropped + text').evaluateAll((texts) => texts.filter((t) => t.getBoundingClientRect().width > t.previousElementSibling.getBoundingClientRect().width).map((t) => t.textContent));
    expect((await page.locator('.fl rect.f-dropped').count()) > 0 && !wide.length, `wider than their entries: ${wide.join(', ')}`);
    await page.setViewportSize({ width: 1440, height: 900 });
  });

  await w.check('how do I connect: lines to copy, and the first request seen', async () => {
    await w.open('/connect');
    await page.getByRole('tab', { name: 'OpenAI, Python' }).click();
    await page.getByText(`base_url="${w.base}/v1"`).waitFor();
    await page.getByText('Waiting for the first request').waitFor();
    await call('POST', '/v1/chat/completions', { model: 'demo', messages: [{ role: 'user', content: 'Hello' }] }, { server: w.base });
    await page.getByRole('status').filter({ hasText: 'Received' }).waitFor();
    await axe(page, 'Connect, with what was received');
  });
  await w.end();
}
