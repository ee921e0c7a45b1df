// Conversations, names, tasks and runs that attack the page: all of it is shown as text on every page.
import { Walker, call, expect, fits } from '../browser.mjs';
import { attacks, hostile } from '../fixtures.mjs';

/** What no page may contain, whatever others wrote. */
export function harmful() {
  const found = [];
  for (const e of document.querySelectorAll('*')) {
    for (const a of e.attributes) {
      if (/^on/i.test(a.name)) found.push(`${e.tagName} has ${a.name}`);
      if (['href', 'src', 'action', 'formaction', 'data', 'xlink:href'].includes(a.name) && /^\s*(javascript|vbscript):/i.test(a.value)) found.push(`${e.tagName} runs ${a.value}`);
      if (a.name === 'href' && /^\s*(data|blob|file):/i.test(a.value) && !e.hasAttribute('download')) found.push(`${e.tagName} opens ${a.value.slice(0, 40)}`);
    }
    if (['IFRAME', 'OBJECT', 'EMBED', 'BASE', 'FORM-ASSOCIATED', 'FOREIGNOBJECT'].includes(e.tagName.toUpperCase())) found.push(`there is ${e.tagName}`);
    if (e.tagName === 'SCRIPT' && new URL(e.src || 'about:blank').origin !== location.origin) found.push('there is a script without a file of the server');
  }
  if (globalThis.pwned) found.push('a script of the conversation ran');
  return found;
}

export default async function hostilePages(browser) {
  const w = await Walker.begin(browser);
  const { page } = w;
  let at;

  const visit = async (path, text = 'pwned') => {
    await w.go(path);
    await page.waitForFunction((words) => document.querySelector('main').textContent.includes(words) && !document.querySelector('.loading'), text);
    // Everything that is folded is unfolded, and everything that can be pointed at is pointed at.
    await page.evaluate(() => document.querySelectorAll('main details').forEach((d) => (d.open = true)));
    await page.evaluate(() => document.querySelectorAll('main *').forEach((e) => e.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }))));
    await page.evaluate(() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))));
    const found = await page.evaluate(harmful);
    expect(!found.length, `${path}: ${found.join(', ')}`);
    await fits(page, path);
  };

  await w.check('hostile content is shown as what it is in its conversation', async () => {
    at = await hostile();
    await visit(`/conversations/${at.conversation}?seq=1`, '<script>window.pwned=1</script>');
    await visit(`/conversations/${at.conversation}?seq=8`, 'RLO');
    expect((await page.title()).includes('<img'), `the title is not text: ${attacks.title}`);
    for (let seq = 4; seq <= at.last; seq += 4) await visit(`/conversations/${at.conversation}?seq=${seq}`);
    await visit(`/conversations/${at.conversation}`);
    // A megabyte in one line and a word of a million characters: the page has the beginning of each, and answers keys meanwhile.
    await page.evaluate(() => {
      globalThis.long_ = 0;
      new PerformanceObserver((list) => list.getEntries().forEach((e) => (globalThis.long_ = Math.max(globalThis.long_, e.duration)))).observe({ type: 'longtask' });
    });
    for (const index of [4, 5]) {
      await w.go(`/conversations/${at.conversation}?seq=${1 + 3 * index}`);
      await page.locator(`#e${1 + 3 * index}`).getByRole('button', { name: /more characters · show all/ }).waitFor();
      const shown = await page.evaluate(() => document.querySelector('main').textContent.length);
      expect(shown < 300_000, `${shown} characters are in the page`);
      await page.keyboard.press('?');
      await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
      await page.keyboard.press('Escape');
    }
    console.log(`# a megabyte in one line, a million-character word: the page was busy for ${Math.round(await page.evaluate(() => globalThis.long_))} ms at most`);
  });
  await w.check('hostile content is shown as what it is on every other page', async () => {
    for (const path of ['/conversations', '/conversations?q=pwned', `/conversations/${at.conversation}/context`, `/conversations/${at.conversation}/context?max_tokens=500`]) await visit(path);
    for (const seq of at.requests) {
      await visit(`/conversations/${at.conversation}/requests/${seq}`);
      for (const tab of ['Raw', 'Heaviest', 'Answer']) {
        await page.getByRole('tab', { name: tab }).click();
        expect(!(await page.evaluate(harmful)).length, `${tab} of #${seq} is harmful`);
      }
    }
    await visit(`/compare?left=${at.conversation}~${at.requests[0]}&right=${at.conversation}~${at.requests[1]}`);
    await visit(`/crews/${at.crew}`);
    await visit('/crews', 'Plan, build');
    await visit(`/runs/${at.run}`);
    await visit('/runs', 'release-notes');
    await visit(`/tasks/${at.task}`);
    await visit('/tasks');
    await visit(`/conversations/${at.forwarded}`);
    await visit('/connect', 'Base URL');
    await visit('/health', 'Latency');
    // An address is text of others, too: it is a link that somebody sent.
    for (const text of attacks.addresses) {
      await page.goto(w.base + text);
      await page.locator('h1').first().waitFor();
      const found = await page.evaluate(harmful);
      expect(!found.length, `${text}: ${found.join(', ')}`);
    }
  }, [/40[04]/]);
  await w.end();
}
