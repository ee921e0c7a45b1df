// What is known, since when and from where: one click to the source, one to forget; and facts that attack the page.
import { Walker, axe, call, expect, fits } from '../browser.mjs';
import { attacks } from '../fixtures.mjs';
import { harmful } from './hostile.mjs';

/** Walks the page before a server, with a key where one is needed. */
async function walk(browser, name, { server, key = '', hostile = false }) {
  const w = await Walker.begin(browser, server ? { server } : {});
  const { page } = w;
  const api = (method, path, body) => call(method, path, body, { server: w.base, key });
  const forget = (text) => page.getByRole('listitem').filter({ hasText: text }).getByRole('button', { name: /^Forget fact \d+$/ });
  let said;

  await w.check(`${name}what is known of a user, with its words: one click to the source, one to forget`, async () => {
    if (key) {
      await page.goto(`${w.base}/memory`);
      await page.getByLabel('Key', { exact: true }).fill(key);
      await page.getByRole('button', { name: 'Open', exact: true }).click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    }
    said = await api('POST', '/api/conversations', { key: 'memories', title: 'Where it was said', user_id: 'ann' });
    await api('POST', '/api/conversations/memories/entries', { role: 'user', content: 'My name is Ann and I prefer short answers in metric units.' });
    const source = { conversation_id: said.id, seq: 1, quote: 'I prefer short answers' };
    await api('POST', '/api/memory?user_id=ann', { text: 'Ann prefers short answers', kind: 'preference', sources: [source] });
    await api('POST', '/api/memory?user_id=ann', { text: 'Ann lives in Lisbon', kind: 'identity' });
    await w.open('/memory?of=user:ann');
    await page.getByRole('heading', { name: /Ann prefers short answers/ }).waitFor();
    expect((await page.getByRole('listitem').filter({ hasText: 'Ann prefers' }).locator('time[title]').count()) === 1, 'a fact does not say since when');
    await page.locator('.profile summary').click();
    await page.locator('.profile pre').filter({ hasText: 'short answers' }).waitFor();
    await axe(page, 'Memory');
    await page.setViewportSize({ width: 390, height: 844 });
    await fits(page, 'Memory at 390 px');
    await page.setViewportSize({ width: 1440, height: 900 });
    // To the source, and back.
    await page.getByRole('listitem').filter({ hasText: 'Ann prefers' }).getByRole('link', { name: 'entry 1' }).click();
    await page.waitForURL(new RegExp(`/conversations/${said.id}\\?seq=1`));
    await w.row('I prefer short answers').waitFor();
    await page.goBack();
    // A wrong click can be taken back; what is forgotten is no longer there for anybody.
    await forget('Ann lives in Lisbon').click();
    await page.getByRole('heading', { name: /Ann lives in Lisbon/ }).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Take back' }).click();
    await page.getByRole('heading', { name: /Ann lives in Lisbon/ }).waitFor();
    await forget('Ann lives in Lisbon').click();
    await page.getByRole('heading', { name: /Ann lives in Lisbon/ }).waitFor({ state: 'detached' });
    const left = JSON.stringify(await api('GET', '/api/memory/export?user_id=ann'));
    expect(!left.includes('Lisbon') && left.includes('short answers'), `the memory has ${left}`);
    // The fact and its message.
    await page.getByRole('listitem').filter({ hasText: 'Ann prefers' }).getByRole('button', { name: /redact its messages/ }).click();
    await page.getByRole('button', { name: 'Forget and redact' }).click();
    await page.getByText('Nothing is known here yet').waitFor();
    const entries = JSON.stringify((await api('GET', '/api/conversations/memories/entries')).data);
    expect(!entries.includes('short answers'), 'the message still says it');
  }, key ? [/401/] : []);

  if (hostile) {
    await w.check(`${name}facts, subjects, quotes and users that attack the page are shown as what they are`, async () => {
      const user = `${attacks.title}<script>`;
      const texts = [...attacks.texts.slice(0, 4), `pwned ${'w'.repeat(1500)}`, `pwned \u202egnp.exe ![x](http://attacker.example/p.png)`];
      const of = `user_id=${encodeURIComponent(user)}`;
      for (const [i, text] of texts.entries()) {
        // A text that the memory itself refuses cannot attack the page.
        await api('POST', `/api/memory?${of}`, { text: `${i} ${text}`.slice(0, 1900), subject: attacks.name.slice(0, 60), attribute: `pwned ${i}` }).catch((err) => {
          if (!/ 4\d\d /.test(err.message)) throw err;
        });
      }
      const facts = (await api('GET', `/api/memory?${of}`)).data;
      expect(facts.length >= 4, `only ${facts.length} of the attacks are in the memory`);
      await w.open(`/memory?of=${encodeURIComponent(`user:${user}`)}`);
      await page.locator('.mem').getByText('pwned').first().waitFor();
      await page.locator('.profile summary').click();
      await page.evaluate(() => document.querySelectorAll('main *').forEach((e) => e.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }))));
      for (const width of [1440, 390]) {
        await page.setViewportSize({ width, height: 844 });
        await fits(page, `Memory with attacks at ${width} px`);
        const found = await page.evaluate(harmful);
        expect(!found.length, found.join(', '));
      }
      await page.setViewportSize({ width: 1440, height: 900 });
      await page.getByRole('button', { name: /^Forget fact \d+$/ }).first().click();
      await page.getByRole('button', { name: 'Take back' }).waitFor();
      expect(!(await page.evaluate(harmful)).length, 'forgetting it did harm');
    });
  }
  await w.end();
}

export default async function memory(browser) {
  await walk(browser, '', { hostile: true });
  await walk(browser, 'with keys: ', { server: process.env.INSPECTOR_KEYS_URL, key: (process.env.INSPECTOR_KEYS ?? '').split(' ')[0] });
}
