// Walks through every page of the inspector as a person would, in a real browser, before a real server.
import { attacks, hostile, long, session } from './fixtures.mjs';
import { axe, base, call, check, expect, finish, fits, launch, shots, watch } from './browser.mjs';

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'light', reducedMotion: 'reduce', permissions: ['clipboard-read', 'clipboard-write'] });
context.setDefaultTimeout(90_000); // for busy machines; nothing is measured by it
watch(context);
const page = await context.newPage();
const open = async (path) => {
  await page.goto(base + path);
  await page.locator('h1').first().waitFor();
};
const row = (text) => page.getByRole('article').filter({ hasText: text });
/** Says something to the model that streams. */
const talk = async (text) => {
  await page.getByLabel('Model', { exact: true }).selectOption('sonnet');
  await page.getByLabel('Message', { exact: true }).fill(text);
  await page.keyboard.press('Enter');
};
const address = () => page.url().slice(base.length);

await check('an empty server invites', async () => {
  await open('/');
  await page.getByText('No conversations yet').waitFor();
  await axe(page, 'the empty list');
});

await check('a new user talks, sees what the second answer was shown, and what 500 tokens would cut', async () => {
  await page.getByRole('button', { name: 'New', exact: true }).click();
  await page.getByText('Nothing was said yet').waitFor();
  for (const text of ['My dog is called Rex.', 'What is my dog called?']) {
    await page.getByLabel('Message', { exact: true }).fill(text);
    await page.keyboard.press('Enter');
    await row(text).first().waitFor();
    await page.getByText(text === 'What is my dog called?' ? /shown 3 messages/ : /shown 1 message/).waitFor();
  }
  await page.getByRole('link', { name: 'Request', exact: true }).last().click();
  await page.getByText('hash proved').waitFor();
  await page.getByRole('button', { name: /What if/ }).click();
  await page.getByLabel('Tokens at most').fill('500');
  await page.getByText('not sent: what would be').waitFor();
  await page.getByText(/left out/).first().waitFor();
  expect(/max_tokens=500/.test(page.url()), `the address has no limit: ${page.url()}`);
});

const coding = await session();
let forked = '';

await check('what have my agents been doing: the list, live, filtered by its address, searched', async () => {
  await open('/conversations');
  await page.getByRole('link', { name: 'Retries for the upload queue' }).waitFor();
  await call('POST', '/api/conversations', { key: 'live', title: 'Begun meanwhile' });
  await page.getByRole('button', { name: /new conversation/ }).click();
  await page.getByRole('link', { name: 'Begun meanwhile' }).waitFor();
  await page.getByLabel('Mode', { exact: true }).selectOption('agent');
  expect(address() === '/conversations?mode=agent', `the filter is not in the address: ${address()}`);
  await open('/conversations?q=growing+pause');
  await page.locator('mark').first().waitFor();
  await page.getByRole('link').filter({ has: page.locator('mark') }).first().click();
  await row('growing pause').waitFor();
});

await check('what was said, exactly: the timeline', async () => {
  await open(`/conversations/${coding}`);
  await page.getByText('The queue keeps its order now').waitFor();
  await page.getByRole('cell', { name: 'sent in order' }).waitFor();
  const last = page.locator('details.call').last();
  await last.locator('summary').click();
  expect(await last.evaluate((d) => d.open), 'a call did not unfold');
  await page.keyboard.press('g');
  await row('Uploads that fail are lost').waitFor();
  const read = page.locator('details.call').first();
  await read.locator('summary').click();
  await page.getByText('func (q *Queue) next()').first().waitFor();
  const edit = page.locator('details.call').filter({ hasText: 'edit' }).first();
  await edit.locator('summary').click();
  await edit.locator('.diff .a').first().waitFor();
  await page.reload();
  await page.keyboard.press('g');
  await page.getByText('func (q *Queue) next()').first().waitFor();
  await page.getByRole('button', { name: /Find/ }).click();
  await page.getByLabel('Find in this conversation').fill('#60');
  await page.keyboard.press('Enter');
  await page.locator('#e60, #e59, #e58').first().waitFor();
});

await check('talk: a stream of 200 pieces a second grows, keeps its place, and ends in the log', async () => {
  await open(`/conversations/${coding}`);
  await talk('stream a long answer');
  await page.getByRole('article', { name: 'The answer in progress' }).waitFor();
  await page.getByText('piece 20 ', { exact: false }).waitFor();
  const box = page.getByRole('region', { name: 'Log' });
  const bottom = () => box.evaluate((b) => b.scrollHeight - b.scrollTop - b.clientHeight);
  expect((await bottom()) < 60, 'the newest text is out of sight');
  await page.getByText('piece 399', { exact: false }).waitFor();
  await page.getByRole('article', { name: 'The answer in progress' }).waitFor({ state: 'detached' });
  expect((await page.getByText('piece 399', { exact: false }).count()) === 1, 'the answer is shown twice');
});

await check('stop a turn, and resume one that broke off', async () => {
  await talk('stream a long answer');
  await page.getByText('piece 20 ', { exact: false }).last().waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText(/Broke off after/).waitFor();
  await page.getByText('cancelled').first().waitFor();
  await talk('break off');
  await page.getByRole('button', { name: /Resume/ }).waitFor();
  await page.locator('body').click({ position: { x: 700, y: 20 } });
  await page.keyboard.press('r');
  await page.getByText(/shown \d+ messages/).last().waitFor();
});

await check('a call waits for a person, and is allowed by a key', async () => {
  await talk('search the log');
  await page.getByText('waits for you').first().waitFor();
  await page.getByRole('group', { name: 'A call waits for you' }).waitFor();
  await page.getByRole('button', { name: /Allow/ }).click();
  await page.getByRole('group', { name: 'A call waits for you' }).waitFor({ state: 'detached' });
  await page.locator('details.call').filter({ hasText: 'conversation_search' }).last().waitFor();
});

await check('an edited message continues in a fork', async () => {
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Edit entry 1 in a fork' }).or(page.getByRole('button', { name: /Edit entry/ })).last().click();
  await page.getByRole('dialog').getByLabel('Message').fill('And in one sentence?');
  await page.getByRole('button', { name: 'Fork and send' }).click();
  await page.waitForURL((u) => !u.pathname.includes(coding) && u.pathname.startsWith('/conversations/'));
  forked = address().split('/')[2];
  await row('And in one sentence?').first().waitFor();
  await page.getByRole('link', { name: /fork at/ }).first().waitFor();
});

await check('an image is attached, kept and shown', async () => {
  const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC', 'base64');
  await page.locator('input[type=file]').setInputFiles({ name: 'red.png', mimeType: 'image/png', buffer: png });
  await page.getByLabel('Message', { exact: true }).fill('What colour is this?');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.locator('img.shown').waitFor();
  expect((await page.locator('img.shown').first().evaluate((i) => i.naturalWidth)) === 10, 'the image is not shown');
});

let requests = [];
await check('what did the model see for this answer: verdicts, budgets, bytes, heaviest parts, curl', async () => {
  requests = (await call('GET', `/api/conversations/${coding}/rounds?limit=50`)).data.map((r) => r.seq).sort((a, b) => a - b);
  await open(`/conversations/${coding}/requests/${requests[0]}`);
  await page.getByText('hash proved').waitFor();
  for (const name of ['Tokens in, by the provider', 'Read from the cache', 'Messages', 'Characters', 'Tokens of the log']) await page.getByRole('heading', { name, exact: true }).waitFor();
  const strip = page.getByRole('application');
  await strip.hover({ position: { x: 300, y: 20 } });
  await page.locator('.tip.on').waitFor();
  await strip.focus();
  await page.keyboard.press('End');
  await page.locator('.tip.on').filter({ hasText: /kept|newest/ }).waitFor();
  await page.getByRole('tab', { name: 'Raw' }).click();
  await page.getByText('exactly as sent').waitFor();
  await page.getByRole('tab', { name: 'Heaviest' }).click();
  await page.getByText('The heaviest first').waitFor();
  await page.getByRole('tab', { name: 'Answer' }).click();
  await page.getByText('What is recorded of it').waitFor();
  await page.locator('body').click({ position: { x: 700, y: 20 } });
  await page.keyboard.press('y');
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied.startsWith('curl ') && copied.includes('"messages":['), `not a curl command: ${copied.slice(0, 200)}`);
});

await check('why has it forgotten, and what repeats: the sentence, the prefix, the neighbours', async () => {
  await page.getByRole('tab', { name: 'As sent' }).click();
  await page.getByText(/are left out because the limit on/).waitFor();
  await page.getByLabel('Verdict').selectOption('left');
  await page.getByRole('row').filter({ hasText: 'dropped' }).first().waitFor();
  await page.keyboard.press('Escape');
  await page.locator('body').click({ position: { x: 700, y: 20 } });
  await page.keyboard.press(']');
  await page.waitForURL(new RegExp(`requests/${requests[1]}`));
  await page.getByText(/byte for byte as in/).first().waitFor();
});

await check('what changed between two requests', async () => {
  await page.locator('body').click({ position: { x: 700, y: 20 } });
  await page.keyboard.press('c');
  await page.waitForURL(/\/compare\?/);
  await page.getByText(/messages? equal/).first().waitFor();
  await page.getByText(/added\./).waitFor();
  await page.getByLabel('right side', { exact: true }).selectOption({ label: 'View handoff, now' });
  await page.getByText(/parts? changed/).waitFor();
});

await check('what if: another view, limit and place, without asking a model', async () => {
  await open(`/conversations/${coding}/context?view=codex&max_messages=12`);
  await page.getByText('not sent: what would be').waitFor();
  await page.getByText(/left out/).first().waitFor();
  await page.getByLabel('Messages at most').fill('');
  await page.getByLabel('view', { exact: false }).first().selectOption('handoff');
  await page.waitForURL(/view=handoff/);
});

await check('how did the crew talk: columns, cursors, play and speak', async () => {
  await open('/crews');
  await page.getByRole('link', { name: 'Plan, build, review' }).click();
  await page.getByLabel('Message to the crew').fill('Make a plan for a small garden.');
  await page.getByLabel('Your name').fill('Ann');
  await page.getByRole('button', { name: 'Speak' }).click();
  await page.getByText('Ann', { exact: true }).waitFor();
  await page.getByText(/has seen up to/).first().waitFor();
  await page.getByText('finished').waitFor();
  await page.getByRole('link', { name: /Compare roles/ }).click();
  await page.getByText(/Equal for/).waitFor();
  // Nobody has spoken to the crew at first, and the page has to find that out.
}, [/404.*crews\/example\/status/]);

let run = '';
await check('how far is the run: graph, approval, result', async () => {
  await open('/runs');
  await page.getByRole('listitem').filter({ hasText: 'Write release notes' }).getByRole('button', { name: 'Start' }).click();
  await page.getByLabel(/version/).fill('1.4');
  await page.getByLabel(/changes/).fill('Uploads are tried again.');
  await page.getByRole('dialog').getByRole('button', { name: 'Start' }).click();
  await page.getByRole('button', { name: /Approve/ }).waitFor();
  run = address();
  await page.getByRole('button', { name: /sort ✓ done/ }).click();
  await page.getByRole('button', { name: /approve ◻ waits/ }).click();
  await page.getByRole('button', { name: /Approve/ }).click();
  await page.getByText('finished').first().waitFor();
  await page.getByRole('heading', { name: 'Result' }).waitFor();
});

let task = '';
await check('what was given away: prompt, history, agent, output', async () => {
  await open('/tasks');
  await page.getByRole('button', { name: 'New' }).click();
  await page.getByLabel('What is to be done').fill('Write the release note of the retries.');
  await page.getByLabel(/Conversation that explains it/).fill('retries');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByText(/The history that explains it/).waitFor();
  task = address();
  await page.getByRole('button', { name: 'Deploy' }).click();
  await page.getByText('completed').first().waitFor();
  await page.getByText(/shown \d+ message/).first().waitFor();
});

await check('how do I connect: lines to copy, and the first request seen', async () => {
  await open('/connect');
  await page.getByRole('tab', { name: 'OpenAI, Python' }).click();
  await page.getByText(`base_url="${base}/v1"`).waitFor();
  await page.getByText('Waiting for the first request').waitFor();
  await call('POST', '/v1/chat/completions', { model: 'sonnet', messages: [{ role: 'user', content: 'Hello from a client' }] });
  await page.getByRole('status').filter({ hasText: 'Received' }).waitFor();
});

await check('is it well', async () => {
  await open('/health');
  await page.getByRole('heading', { name: 'Latency by stage' }).waitFor();
  await page.getByRole('cell', { name: /^store/ }).first().waitFor();
});

await check('hostile content is shown as what it is', async () => {
  const id = await hostile();
  for (const path of ['/conversations', `/conversations/${id}?seq=1`, `/conversations/${id}`, `/conversations/${id}/context`, '/conversations?q=pwned']) {
    await open(path);
    await page.getByText(/pwned|Eve/).first().waitFor();
    for (const d of await page.locator('main details:not([open]) > summary').all()) await d.click({ timeout: 2000 }).catch(() => {});
    await fits(page, path);
  }
  await open(`/conversations/${id}?seq=1`);
  await page.getByText('<script>window.pwned=1</script>', { exact: false }).first().waitFor();
  await page.getByText('RLO').first().waitFor();
  expect(!(await page.evaluate(() => globalThis.pwned)), 'a script of the conversation ran');
  expect((await page.locator('a[href^="javascript:"], a[href^="data:"]').count()) === 0, 'a link would run a script');
  expect((await page.title()).includes('<img'), `the title is not text: ${attacks.title}`);
});

await check('a long log: few rows exist, jump, find, and places that stay', async () => {
  const n = Number(process.env.INSPECTOR_ENTRIES ?? 5000);
  const id = await long(n);
  const begun = Date.now();
  await page.goto(`${base}/conversations/${id}`);
  await page.locator(`#e${n}`).waitFor();
  console.log(`# ${n} entries: the newest one is shown after ${Date.now() - begun} ms`);
  const rows = () => page.locator('article.e').count();
  expect((await rows()) < 120, `${await rows()} rows exist`);
  await open(`/conversations/${id}?seq=${Math.floor(n / 2)}`);
  await page.locator(`#e${Math.floor(n / 2)}`).waitFor();
  const frames = await page.getByRole('region', { name: 'Log' }).evaluate(async (box) => {
    const times = [];
    let last = performance.now();
    for (let i = 0; i < 60; i++) {
      box.scrollTop += 400;
      await new Promise((r) => requestAnimationFrame(r));
      times.push(performance.now() - last);
      last = performance.now();
    }
    return times.sort((a, b) => a - b);
  });
  console.log(`# scrolling: median frame ${frames[30].toFixed(1)} ms, 95 % ${frames[57].toFixed(1)} ms`);
  expect((await rows()) < 120, `${await rows()} rows exist after scrolling`);
  await page.getByRole('button', { name: /Find/ }).click();
  await page.getByLabel('Find in this conversation').fill('pangolin');
  await page.locator('.hits mark').first().click();
  await page.locator('#e777').waitFor();
});

await check('the connection is lost, says so, and comes back without a gap', async () => {
  await open(`/conversations/${coding}`);
  await page.getByText('Live', { exact: true }).waitFor();
  await context.setOffline(true);
  await page.getByRole('alert').filter({ hasText: 'connection is lost' }).waitFor();
  await call('POST', `/api/conversations/${coding}/entries`, { role: 'user', content: 'Said while you were away.' });
  await context.setOffline(false);
  await row('Said while you were away.').waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
}, [/ERR_INTERNET_DISCONNECTED|ERR_NETWORK_CHANGED/]);

await check('what is not there, and what cannot be had, say so', async () => {
  await open('/conversations/conv_00000000000000000000000000000000').catch(() => {});
  await page.getByRole('heading', { name: 'Not found' }).waitFor();
  await open(`/conversations/${coding}/requests/1`).catch(() => {});
  await page.getByText('No request was recorded for #1').waitFor();
}, [/404/]);

await check('the keyboard alone', async () => {
  await open('/conversations');
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

const pages = {
  conversations: '/conversations', search: '/conversations?q=queue', conversation: `/conversations/${coding}`, request: `/conversations/${coding}/requests/${requests.at(-1)}`,
  'what-if': `/conversations/${coding}/context?max_tokens=2000`, compare: `/compare?left=${coding}:${requests[0]}&right=${coding}:${requests[1]}`, crew: '/crews/example', crews: '/crews',
  run, runs: '/runs', task, tasks: '/tasks', connect: '/connect', health: '/health',
};
for (const [width, height] of [[1440, 900], [720, 450], [390, 844]]) {
  for (const scheme of ['light', 'dark']) {
    await check(`every page at ${width} px, ${scheme}: nothing serious for axe, nothing too wide`, async () => {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme: scheme });
      await page.evaluate(() => localStorage.removeItem('continuo.theme'));
      const found = [];
      for (const [name, path] of Object.entries(pages)) {
        await open(path);
        await page.locator('.loading').waitFor({ state: 'detached' });
        await page.waitForLoadState('load');
        await page.evaluate(() => document.fonts.ready);
        await fits(page, name).catch((err) => found.push(err.message));
        // The markup is one in both schemes; the colours are not.
        if (width !== 720) await axe(page, `${name} (${path})`, scheme === 'dark' ? ['color-contrast'] : undefined).catch((err) => found.push(err.message));
        if (shots && width !== 720) await page.screenshot({ path: `${shots}/${name}-${scheme}${width < 1000 ? '-phone' : ''}.png` });
      }
      expect(!found.length, found.join('\n'));
    });
  }
}

await browser.close();
finish();
