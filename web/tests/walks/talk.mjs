// One conversation, from what was said in it to what the model was shown for each answer.
import { Walker, call, expect } from '../browser.mjs';
import { session } from '../fixtures.mjs';

/** Gives the addresses of what it saw, for the checks that look at every page. */
export default async function talk(browser) {
  const w = await Walker.begin(browser, { permissions: ['clipboard-read', 'clipboard-write'] });
  const { page } = w;
  let requests = [];

  const coding = await session();
  await w.check('what was said, exactly: the timeline', async () => {
    await w.open(`/conversations/${coding}`);
    await page.getByText('The queue keeps its order now').waitFor();
    await page.getByRole('cell', { name: 'sent in order' }).waitFor();
    const last = page.locator('details.call').last();
    await last.locator('summary').click();
    expect(await last.evaluate((d) => d.open), 'a call did not unfold');
    await page.keyboard.press('g');
    await w.row('Uploads that fail are lost').waitFor();
    const read = page.locator('details.call').first();
    await read.locator('summary').click();
    await page.getByText('func (q *Queue) next()').first().waitFor();
    const edit = page.locator('details.call').filter({ hasText: 'edit' }).first();
    await edit.locator('summary').click();
    await edit.locator('.diff .a').first().waitFor();
    await page.reload();
    await page.locator('article.e').first().waitFor(); // before it there is no log to go through
    await page.keyboard.press('g');
    await w.row('Uploads that fail are lost').waitFor();
    await page.locator('details.call[open]').getByText('func (q *Queue) next()').first().waitFor();
    await page.getByRole('button', { name: /Find/ }).click();
    await page.getByLabel('Find in this conversation').fill('#60');
    await page.keyboard.press('Enter');
    await page.locator('#e60, #e59, #e58').first().waitFor();
  });

  await w.check('talk: a stream of 200 pieces a second grows, keeps its place, and ends in the log', async () => {
    await w.open(`/conversations/${coding}`);
    await w.talk('stream a long answer');
    await page.getByText('piece 399', { exact: false }).waitFor();
    await w.answered();
    expect((await page.getByText('piece 399', { exact: false }).count()) === 1, 'the answer is shown twice');
    await w.talk('stream until I stop you');
    await w.answer.getByText('piece 20 ', { exact: false }).waitFor();
    // The newest text stays in sight while the answer grows: a frame may come between the text and the scrolling.
    const height = await page.evaluate(() => document.querySelector('.scroller').scrollHeight);
    await page.waitForFunction((before) => {
      const b = document.querySelector('.scroller');
      return b.scrollHeight - before > 200 && b.scrollHeight - b.scrollTop - b.clientHeight < 60;
    }, height);
  });

  await w.check('stop a turn, and resume one that broke off', async () => {
    if (!(await w.answer.count())) { // this check is run alone
      await w.open(`/conversations/${coding}`);
      await w.talk('stream until I stop you');
    }
    await w.answer.getByText('piece 20 ', { exact: false }).waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText(/Broke off after/).waitFor();
    await page.getByText('cancelled').first().waitFor();
    await w.answered();
    // Which turn is the newest may be answered late: until then there is none to resume, and not the one before.
    let release;
    const seen = new Promise((r) => (release = r));
    const newest = /\/turns\?limit=1$/;
    await page.route(newest, async (route) => {
      await seen;
      await route.continue();
    });
    await w.talk('break off');
    const broken = w.row('This answer will break');
    await broken.getByText(/Broke off after/).waitFor();
    await w.answered();
    expect((await broken.getByRole('button', { name: /Resume/ }).count()) === 0, 'the turn before can be resumed');
    release();
    // The answer that was cancelled can be resumed until the next message is in the log.
    await broken.getByRole('button', { name: /Resume/ }).waitFor();
    await page.unroute(newest);
    await page.locator('body').click({ position: { x: 700, y: 20 } });
    await page.keyboard.press('r');
    await page.getByText(/shown \d+ messages/).last().waitFor();
    await w.answered();
  });

  await w.check('a call waits for a person, and is allowed by a key', async () => {
    // What the turn was before it waited may be answered after that, and does not undo it.
    let release;
    const seen = new Promise((r) => (release = r));
    const turns = /\/turns\/[^/?]+$/;
    await page.route(turns, async (route) => {
      const before = { ...(await (await route.fetch()).json()), waiting_for: undefined };
      await seen;
      await route.fulfill({ json: before });
    });
    await w.talk('search the log');
    await page.getByText('waits for you').first().waitFor();
    release();
    // It is asked for below the answer in progress first, and with the entry once that was read.
    const ask = page.getByRole('article', { name: /^Entry \d+, assistant$/ }).getByRole('group', { name: 'A call waits for you' });
    await ask.getByRole('button', { name: /Allow/ }).click();
    await page.getByRole('group', { name: 'A call waits for you' }).waitFor({ state: 'detached' });
    await page.locator('details.call').filter({ hasText: 'conversation_search' }).last().waitFor();
    await w.answered();
    await page.unroute(turns);
  });

  await w.check('an edited message continues in a fork', async () => {
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Edit entry 1 in a fork' }).or(page.getByRole('button', { name: /Edit entry/ })).last().click();
    await page.getByRole('dialog').getByLabel('Message').fill('And in one sentence?');
    await page.getByRole('button', { name: 'Fork and send' }).click();
    await page.waitForURL((u) => !u.pathname.includes(coding) && u.pathname.startsWith('/conversations/'));
    await w.row('And in one sentence?').first().waitFor();
    await page.getByRole('link', { name: /fork at/ }).first().waitFor();
  });

  await w.check('an image is attached, kept and shown', async () => {
    const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC', 'base64');
    await page.locator('input[type=file]').setInputFiles({ name: 'red.png', mimeType: 'image/png', buffer: png });
    await page.getByLabel('Message', { exact: true }).fill('What colour is this?');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.locator('img.shown').waitFor();
    expect((await page.locator('img.shown').first().evaluate((i) => i.decode().then(() => i.naturalWidth))) === 10, 'the image is not shown');
    await w.answered();
  });

  await w.check('what did the model see for this answer: verdicts, budgets, bytes, heaviest parts, curl', async () => {
    requests = (await call('GET', `/api/conversations/${coding}/rounds?limit=50`)).data.map((r) => r.seq).sort((a, b) => a - b);
    await w.open(`/conversations/${coding}/requests/${requests[0]}`);
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
    const copied = await (await page.waitForFunction(() => navigator.clipboard.readText())).jsonValue(); // it is empty until the page has written it
    expect(copied.startsWith('curl ') && copied.includes('"messages":['), `not a curl command: ${copied.slice(0, 200)}`);
  });

  await w.check('why has it forgotten, and what repeats: the sentence, the prefix, the neighbours', async () => {
    await page.getByRole('tab', { name: 'As sent' }).click();
    await page.getByText(/are left out because the limit on/).waitFor();
    await page.getByLabel('Verdict').selectOption('left');
    await page.getByRole('row').filter({ hasText: 'dropped' }).first().waitFor();
    await page.keyboard.press('Escape');
    await page.locator('body').click({ position: { x: 700, y: 20 } });
    await page.getByRole('link', { name: /^Request after/ }).waitFor();
    await page.keyboard.press(']');
    await page.waitForURL(new RegExp(`requests/${requests[1]}`));
    await page.getByText(/byte for byte as in/).first().waitFor();
  });

  await w.check('what changed between two requests', async () => {
    await page.locator('body').click({ position: { x: 700, y: 20 } });
    await page.getByRole('link', { name: /^Compare/ }).waitFor();
    await page.keyboard.press('c');
    await page.waitForURL(/\/compare\?/);
    await page.getByText(/messages? equal/).first().waitFor();
    await page.getByText(/added\./).waitFor();
    await page.getByLabel('right side', { exact: true }).selectOption({ label: 'View handoff, now' });
    await page.getByText(/parts? changed/).waitFor();
  });

  await w.check('what if: another view, limit and place, without asking a model', async () => {
    await w.open(`/conversations/${coding}/context?view=codex&max_messages=12`);
    await page.getByText('not sent: what would be').waitFor();
    await page.getByText(/left out/).first().waitFor();
    await page.getByLabel('Messages at most').fill('');
    await page.getByLabel('view', { exact: false }).first().selectOption('handoff');
    await page.waitForURL(/view=handoff/);
  });

  await w.end();
  return {
    conversation: `/conversations/${coding}?seq=130`, request: `/conversations/${coding}/requests/${requests.at(-1)}`,
    'what-if': `/conversations/${coding}/context?max_tokens=2000`, compare: `/compare?left=${coding}~${requests[0]}&right=${coding}~${requests[1]}`,
  };
}
