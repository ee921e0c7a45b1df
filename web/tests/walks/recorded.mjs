// Conversations that others have recorded, among them sessions of two agents that went through the gateway.
import { Walker, call, expect } from '../browser.mjs';
import { imported, recorded, replay } from '../fixtures.mjs';

export default async function recordings(browser) {
  if (!process.env.INSPECTOR_DATA) return console.log('skipped: there are no recorded conversations: see CONTINUO_DATA');
  const w = await Walker.begin(browser);
  const { page } = w;
  const box = page.getByRole('region', { name: 'Log' });
  /** Goes through a conversation from its first entry to its last one. */
  const through = async (path, pause) => {
    await w.open(path);
    await page.locator('article.e').first().waitFor();
    await page.keyboard.press('g');
    await page.locator('#e1').waitFor();
    for (let places = 0; places < 1000; places += pause ? 1 : 20) {
      const end = await box.evaluate((b, pages) => {
        b.scrollTop += b.clientHeight * pages;
        return b.scrollTop + b.clientHeight >= b.scrollHeight - 2;
      }, pause ? 1 : 20);
      await page.waitForFunction(() => !document.querySelector('.e.skel') && document.querySelector('article.e'));
      expect((await page.locator('article.e').count()) < 200, 'the log is drawn whole');
      if (end) return;
    }
  };

  await w.check('two sessions of agents recorded through the gateway: the list, the log, side calls, requests that are equal byte for byte', async () => {
    for (const [agent, name] of [['claude-code', 'claude'], ['codex', 'codex']]) {
      await replay(agent, 'subagent');
      const rows = (await call('GET', '/api/conversations?limit=50&kind=all')).data.filter((r) => JSON.stringify(r.client ?? '').toLowerCase().includes(name));
      const main = rows.filter((r) => !r.parent_id).sort((a, b) => b.last_seq - a.last_seq)[0];
      expect(main, `no conversation of ${agent} is in the list`);
      await w.open('/conversations');
      await page.locator(`a[href="/conversations/${main.id}"]`).first().waitFor();
      await through(`/conversations/${main.id}`, false);
      await page.locator('details.call').first().waitFor();
      const rounds = (await call('GET', `/api/conversations/${main.id}/rounds?limit=50`)).data.map((r) => r.seq).sort((a, b) => a - b);
      expect(rounds.length >= 2, `${agent}: ${rounds.length} requests are recorded`);
      await w.open(`/conversations/${main.id}/requests/${rounds.at(-1)}`);
      await page.getByText('hash proved').waitFor();
      await page.getByRole('tab', { name: 'Raw' }).click();
      await page.getByText('exactly as sent').waitFor();
      await w.open(`/compare?left=${main.id}~${rounds.at(-2)}&right=${main.id}~${rounds.at(-1)}`);
      await page.getByText(/messages? equal/).first().waitFor();
    }
    expect((await call('GET', '/api/conversations?limit=50&kind=side')).data.length > 0, 'no side call of the agents is in the log');
    await w.open('/conversations?kind=side');
    await page.locator('tbody tr').first().waitFor();
  });

  await w.check('the longest session of a coding agent, recorded', async () => {
    const [longest] = recorded('coding-agents', (c) => c.id === 'pi/large-session');
    const id = await imported(longest, 'A long session', 'recorded-coding');
    await through(`/conversations/${id}`, !!process.env.CONTINUO_LONG);
    await w.open(`/conversations/${id}/context?max_tokens=8000`);
    await page.getByText(/left out/).first().waitFor();
    await w.open(`/conversations/${id}?seq=400`);
    await page.locator('article.e').first().waitFor();
  });

  await w.check('a channel of many speakers, recorded', async () => {
    const [channel] = recorded('irc', (c) => c.id === 'irc/2016-06-08_07');
    const id = await imported(channel, 'A channel', 'recorded-irc');
    await through(`/conversations/${id}`, !!process.env.CONTINUO_LONG);
    await w.open(`/conversations/${id}?seq=1`);
    await page.locator('#e1').getByText(channel.messages[0].name, { exact: false }).first().waitFor();
    await w.open(`/conversations?q=${encodeURIComponent('sudo')}`);
    await page.locator('mark').first().waitFor();
  });

  await w.check('images, recorded', async () => {
    const [seen] = recorded('wire-openai', (c) => c.id === 'wire/openai/test_openai-test_image_url_input_force_download');
    const id = await imported(seen, 'An image', 'recorded-image');
    await w.open(`/conversations/${id}`);
    await page.locator('img.shown').first().waitFor();
    expect((await page.locator('img.shown').first().evaluate((i) => i.decode().then(() => i.naturalWidth))) > 10, 'the image is not shown');
    // An address of another host is text: nothing is fetched from it.
    const [remote] = recorded('wire-openai', (c) => c.id === 'wire/openai/test_huggingface-test_image_url_input');
    await w.open(`/conversations/${await imported(remote, 'An address of an image', 'recorded-address')}`);
    await page.locator('article.e').first().waitFor();
  });
  await w.end();
}
