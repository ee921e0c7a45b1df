// The list, and a page that loses its connection, its conversation or its mouse.
import { Walker, call, drawn, expect, shifts } from '../browser.mjs';
import { session } from '../fixtures.mjs';

export default async function reader(browser) {
  const w = await Walker.begin(browser);
  const { page } = w;
  const coding = await session('retries-list', 20);

  await w.check('what have my agents been doing: the list, live, filtered by its address, searched', async () => {
    await w.open('/conversations');
    await page.getByRole('link', { name: 'Retries for the upload queue' }).first().waitFor();
    await call('POST', '/api/conversations', { key: 'live', title: 'Begun meanwhile' });
    await page.getByRole('button', { name: /new conversation/ }).click();
    await page.getByRole('link', { name: 'Begun meanwhile' }).waitFor();
    // What is deleted elsewhere leaves the list, nothing is loaded for it, and no answer from before brings it back.
    const ordered = /\/api\/conversations\?.*sort=tokens/;
    let isRead, release;
    const read = new Promise((r) => (isRead = r));
    const deleted = new Promise((r) => (release = r));
    await page.route(ordered, async (route) => {
      const response = await route.fetch();
      isRead();
      await deleted;
      await route.fulfill({ response });
    });
    const answer = page.waitForResponse(ordered);
    await page.getByLabel('Sort', { exact: true }).selectOption('tokens');
    expect(w.address() === '/conversations?sort=tokens', `the order is not in the address: ${w.address()}`);
    await read;
    await call('DELETE', '/api/conversations/live');
    await page.getByRole('link', { name: 'Begun meanwhile' }).waitFor({ state: 'detached' });
    release();
    await (await answer).finished();
    await page.getByRole('columnheader', { name: 'Tokens in ↓' }).waitFor();
    await drawn(page);
    expect((await page.getByRole('link', { name: 'Begun meanwhile' }).count()) === 0, 'a conversation that was deleted is listed again');
    await page.unroute(ordered);
    await page.getByLabel('Sort', { exact: true }).selectOption('');
    await page.getByLabel('Mode', { exact: true }).selectOption('agent');
    expect(w.address() === '/conversations?mode=agent', `the filter is not in the address: ${w.address()}`);
    await w.open('/conversations?q=growing+pause');
    await page.locator('mark').first().waitFor();
    await page.getByRole('link').filter({ has: page.locator('mark') }).first().click();
    await w.row('growing pause').waitFor();
  });

  await w.check('the connection is lost, says so, and comes back without a gap', async () => {
    await w.open(`/conversations/${coding}`);
    await page.getByText('Live', { exact: true }).waitFor();
    await w.context.setOffline(true);
    await page.getByRole('alert').filter({ hasText: 'connection is lost' }).waitFor();
    await call('POST', `/api/conversations/${coding}/entries`, { role: 'user', content: 'Said while you were away.' });
    await w.context.setOffline(false);
    await w.row('Said while you were away.').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
  }, [/ERR_INTERNET_DISCONNECTED|ERR_NETWORK_CHANGED/]);

  await w.check('no page jumps while it is loaded, or while its list changes', async () => {
    let most = 0;
    for (const path of ['/conversations', `/conversations/${coding}`, `/conversations/${coding}/context`, '/conversations?q=queue', '/memory', '/crews', '/runs', '/tasks', '/connect', '/health']) {
      await w.open(path);
      await page.locator('.loading').waitFor({ state: 'detached' });
      await page.waitForLoadState('load');
      const sum = await shifts(page);
      expect(sum < 0.1, `${path} jumped by ${sum.toFixed(3)}`);
      most = Math.max(most, sum);
    }
    console.log(`# layout shifts (CLS), the most of any page: ${most.toFixed(3)}`);
  });

  await w.check('what is not there, and what cannot be had, say so', async () => {
    for (const [path, heading] of [[`/compare?left=${coding}~1&right=nobody~codex`, 'Not found'], ['/compare?left=x&right=y', 'This could not be shown']]) {
      await w.open(path);
      await page.getByRole('heading', { name: heading }).waitFor();
    }
    await w.open('/conversations/conv_00000000000000000000000000000000').catch(() => {});
    await page.getByRole('heading', { name: 'Not found' }).waitFor();
    await w.open(`/conversations/${coding}/requests/1`).catch(() => {});
    await page.getByText('No request was recorded for #1').waitFor();
  }, [/40[04]/]);

  await w.check('the keyboard alone', async () => {
    await w.open('/conversations');
    await page.locator('[data-row]').first().waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await page.keyboard.press('k');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/conversations\/conv_/);
    await page.locator('article.e').first().waitFor();
    await page.keyboard.press('j');
    await page.locator('article.e.cur').waitFor();
    await page.keyboard.press('/');
    expect(await page.getByLabel('Message', { exact: true }).evaluate((e) => e === document.activeElement), 'the slash does not lead to the composer');
    await page.keyboard.press('Escape');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    await page.keyboard.press('Escape');
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
    await page.keyboard.press('t');
    expect((await theme()) === 'dark', 'the theme did not change');
    await page.keyboard.press('t');
  });

  await w.end();
}
