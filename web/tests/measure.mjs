// Measures what a person waits for in a long conversation. Each figure is the median of several tries, in milliseconds.
import { Walker, base, call, expect, launch } from './browser.mjs';
import { long } from './fixtures.mjs';

const n = Number(process.env.INSPECTOR_ENTRIES || 100_000);
const tries = 5;
const sorted = (list) => [...list].sort((a, b) => a - b);
const at = (list, share) => sorted(list)[Math.min(list.length - 1, Math.floor(list.length * share))];
const say = (what, figure) => console.log(`# ${what}: ${figure}`);
const show = (what, list) => say(what, `${Math.round(at(list, 0.5))} ms (worst of ${list.length}: ${Math.round(at(list, 1))})`);
const frames = (list) => `median ${at(list, 0.5).toFixed(1)} ms, 95 % ${at(list, 0.95).toFixed(1)}, 99 % ${at(list, 0.99).toFixed(1)}, ${list.filter((f) => f > 34).length} of ${list.length} longer than two`;

const id = await long(n);
const browser = await launch();
const w = await Walker.begin(browser);
const { page } = w;
const box = page.getByRole('region', { name: 'Log' });
/** Counts in the page from now on the time between frames, until it is asked for. */
const watchFrames = () => page.evaluate(() => {
  globalThis.frames_ = [];
  let last = performance.now();
  globalThis.watching = true;
  const next = (t) => {
    globalThis.frames_.push(t - last);
    last = t;
    if (globalThis.watching) requestAnimationFrame(next);
  };
  requestAnimationFrame((t) => ((last = t), requestAnimationFrame(next)));
});
const watched = () => page.evaluate(() => ((globalThis.watching = false), globalThis.frames_));

const paints = [];
const entries = [];
const blank = [];
for (let i = 0; i < tries; i++) {
  const fresh = await Walker.begin(browser);
  await fresh.page.addInitScript((seq) => {
    const look = () => {
      if (document.getElementById(`e${seq}`)) requestAnimationFrame(() => (globalThis.entryAt = performance.now()));
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  }, n);
  await fresh.page.goto(`${base}/conversations/${id}`);
  await fresh.page.waitForFunction(() => globalThis.entryAt);
  const times = await fresh.page.evaluate(() => ({ paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0, entry: globalThis.entryAt }));
  paints.push(times.paint);
  entries.push(times.entry);
  await fresh.end();
  const empty = await Walker.begin(browser);
  await empty.page.goto(`${base}/connect`);
  await empty.page.locator('h1').waitFor();
  blank.push(await empty.page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0));
  await empty.end();
}
say('entries', n);
show('a page without a conversation, first contentful paint', blank);
show('the conversation, first contentful paint', paints);
show('the conversation, its newest entry is drawn', entries);

await w.open(`/conversations/${id}`);
await page.locator(`#e${n}`).waitFor();
const jumps = [];
for (let i = 0; i < tries; i++) {
  const seq = Math.floor((n * (i * 2 + 1)) / (tries * 2 + 1));
  jumps.push(await page.evaluate(async (to) => {
    const begun = performance.now();
    history.pushState(null, '', `?seq=${to}`);
    dispatchEvent(new PopStateEvent('popstate'));
    while (!document.getElementById(`e${to}`)) await new Promise((r) => requestAnimationFrame(r));
    return performance.now() - begun;
  }, seq));
}
show('a jump to an entry that was not read', jumps);

// The index follows the log, and what it does not have yet is searched by reading.
for (let took = 1000, i = 0; took > 200 && i < 200; i++) {
  const begun = Date.now();
  await call('GET', `/api/search?q=pangolin&conversation=${id}&limit=50`);
  took = Date.now() - begun;
}
const finds = [];
await page.getByRole('button', { name: /Find/ }).click();
for (const word of ['findme-pangolin', 'pangolin', 'findme', 'findme pangolin', '"findme-pangolin"']) {
  await page.getByLabel('Find in this conversation').fill('');
  await page.locator('.hits mark').waitFor({ state: 'detached' });
  const begun = Date.now();
  await page.getByLabel('Find in this conversation').fill(word);
  await page.locator('.hits mark').first().waitFor();
  finds.push(Date.now() - begun);
}
show('find, from the last key to the first hit', finds);
await page.keyboard.press('Escape');

for (const [what, step, count] of [['a wheel', 120, 300], ['fast', 1200, 200]]) {
  await page.goto(`${base}/conversations/${id}?seq=${Math.floor(n / 2)}`);
  await page.locator(`#e${Math.floor(n / 2)}`).waitFor();
  await box.hover();
  await watchFrames();
  await box.evaluate(async (b, [by, times]) => {
    for (let i = 0; i < times; i++) {
      b.scrollTop += by;
      await new Promise((r) => requestAnimationFrame(r));
    }
  }, [step, count]);
  say(`scrolling, ${what} (${step} px a frame)`, frames(await watched()));
}

await page.goto(`${base}/conversations/${id}`);
await page.locator(`#e${n}`).waitFor();
await w.talk('stream a long answer');
await page.getByRole('article', { name: 'The answer in progress' }).waitFor();
await watchFrames();
const begun = Date.now();
await page.getByText('piece 399', { exact: false }).first().waitFor();
say('a stream of 200 deltas a second', `${frames(await watched())}; 400 deltas in ${Date.now() - begun} ms`);
const heap = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0);
say('memory of the page', `${Math.round(heap / 1e6)} MB, ${await page.evaluate(() => document.querySelectorAll('*').length)} elements`);
expect((await call('GET', `/api/conversations/${id}`)).last_seq >= n, 'entries are missing');
await browser.close();
