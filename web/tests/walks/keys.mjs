// A server with keys: sessions of the page, projects that see nothing of each other, and pages of other origins.
import { createServer } from 'node:http';
import { Walker, axe, call, expect } from '../browser.mjs';

const server = process.env.INSPECTOR_KEYS_URL;
const [ours, theirs] = (process.env.INSPECTOR_KEYS ?? '').split(' ');

/** What a page of another origin tries, and what it could read; nothing of it may work, with or without the person's session. */
async function attack({ target, conversation }) {
  const read = {};
  const attempt = async (name, f) => {
    try {
      read[name] = await f();
    } catch {
      read[name] = 'refused';
    }
  };
  const seen = async (res) => (res.type === 'opaque' || !res.ok ? 'refused' : `${res.status}: ${(await res.text()).slice(0, 80)}`);
  const json = JSON.stringify({ message: 'said by another page', session_id: conversation });
  for (const credentials of ['include', 'omit']) {
    for (const path of ['/api/conversations', `/api/conversations/${conversation}/entries`, '/api/keys', '/api/session', '/metrics', '/v1/models']) {
      await attempt(`GET ${path} ${credentials}`, async () => seen(await fetch(target + path, { credentials })));
      await attempt(`GET ${path} no-cors ${credentials}`, async () => seen(await fetch(target + path, { credentials, mode: 'no-cors' })));
    }
    for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded']) {
      for (const [path, body] of [['/chat', json], [`/api/conversations/${conversation}/entries`, '{"role":"user","content":"written by another page"}'], ['/api/keys', '{"name":"stolen"}'], ['/v1/chat/completions', '{"model":"demo","messages":[{"role":"user","content":"asked by another page"}]}'], [`/api/conversations/${conversation}/fork`, '{}']]) {
        for (const mode of ['cors', 'no-cors']) {
          await attempt(`POST ${path} ${type} ${mode} ${credentials}`, async () => seen(await fetch(target + path, { method: 'POST', mode, credentials, body, headers: { 'Content-Type': type } })));
        }
      }
    }
    await attempt(`DELETE ${credentials}`, async () => seen(await fetch(`${target}/api/conversations/${conversation}`, { method: 'DELETE', credentials })));
    await attempt(`DELETE the session ${credentials}`, async () => seen(await fetch(`${target}/api/session`, { method: 'DELETE', credentials })));
  }
  await attempt('a stream of events', () => new Promise((done, no) => {
    const s = new EventSource(`${target}/api/events`, { withCredentials: true });
    s.onopen = () => done('opened');
    s.onerror = () => (s.close(), no());
  }));
  await attempt('a WebSocket', () => new Promise((done, no) => {
    const s = new WebSocket(`${target.replace('http', 'ws')}/v1/responses`);
    s.onopen = () => done('opened');
    s.onerror = () => no();
  }));
  await attempt('a script', () => new Promise((done, no) => {
    const e = document.createElement('script');
    e.src = `${target}/api/conversations`;
    e.onload = () => done('loaded');
    e.onerror = () => no();
    document.head.append(e);
  }));
  await attempt('a frame', () => new Promise((done) => {
    const e = document.createElement('iframe');
    e.onload = () => {
      let text = '';
      try {
        text = e.contentDocument?.body.textContent ?? '';
      } catch {
        // Of another origin.
      }
      done(text ? `read ${text}` : 'refused');
    };
    e.src = `${target}/conversations/${conversation}`;
    document.body.append(e);
  }));
  // A form is sent without asking first, and leads the frame to the answer.
  await attempt('a form', () => new Promise((done) => {
    const frame = document.createElement('iframe');
    frame.name = 'sink';
    document.body.append(frame);
    const form = document.createElement('form');
    Object.assign(form, { method: 'POST', action: `${target}/api/conversations/${conversation}/entries`, target: 'sink', enctype: 'text/plain' });
    const field = document.createElement('input');
    field.name = '{"role":"user","content":"sent by a form","x":"';
    field.value = '"}';
    form.append(field);
    document.body.append(form);
    frame.onload = () => done('refused');
    form.submit();
  }));
  return Object.entries(read).filter(([, what]) => what !== 'refused').map(([name, what]) => `${name}: ${what}`);
}

/** A page of somebody else, on a port of its own. */
function stranger() {
  return new Promise((listens) => {
    const s = createServer((_, res) => res.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html><title>elsewhere</title><h1>elsewhere</h1>'));
    s.listen(0, '127.0.0.1', () => listens(s));
  });
}

export default async function keys(browser) {
  const w = await Walker.begin(browser, { server });
  const { page } = w;
  const refused = [/40[134]/];
  const made = await call('POST', '/api/conversations', { key: 'ours', title: 'Ours alone' }, { server, key: ours });
  await call('POST', `/api/conversations/${made.id}/entries`, { role: 'user', content: 'The secret word is quokka.' }, { server, key: ours });

  const unlock = async (who, key, path) => {
    await who.page.goto(server + path);
    await who.page.getByRole('dialog', { name: 'This server needs a key' }).waitFor();
    await who.page.getByLabel('Key', { exact: true }).fill(key);
    await who.page.getByRole('button', { name: 'Open', exact: true }).click();
    await who.page.getByRole('dialog').waitFor({ state: 'detached' });
  };

  await w.check('with keys: a wrong key is refused, a right one opens a session that scripts cannot read', async () => {
    await page.goto(`${server}/conversations`);
    await page.getByRole('dialog', { name: 'This server needs a key' }).waitFor();
    await axe(page, 'the question for a key');
    expect(!(await page.content()).includes('Ours alone'), 'something is shown without a key');
    await page.getByLabel('Key', { exact: true }).fill('ctn_wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').first().waitFor();
    await unlock(w, ours, '/conversations');
    await page.getByRole('link', { name: 'Ours alone' }).waitFor();
    const [cookie, ...more] = await w.context.cookies();
    expect(!more.length && cookie.httpOnly && cookie.sameSite === 'Strict', `the cookies are ${JSON.stringify([cookie, ...more])}`);
    expect((await page.evaluate(() => document.cookie)) === '', 'scripts can read the cookie');
    const kept = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }));
    expect(!kept.includes(ours), 'the page keeps the key');
    // The session lives longer than the page, and talks.
    await w.open(`/conversations/${made.id}`);
    await w.send('And now?');
    await page.getByText(/demo model/).first().waitFor();
    await w.answered(); // nothing is written any more that another page could be taken for
  }, refused);

  await w.check('with keys: another origin reads and writes nothing, with the session of the person who opened it', async () => {
    const elsewhere = await stranger();
    const before = await call('GET', `/api/conversations/${made.id}`, undefined, { server, key: ours });
    try {
      // Another port of the same address is the same site for cookies; another name is another site.
      for (const host of ['127.0.0.1', 'localhost']) {
        const origin = `http://${host}:${elsewhere.address().port}`;
        w.allowed = [origin];
        const other = await w.context.newPage();
        await other.goto(origin);
        const read = await other.evaluate(attack, { target: server, conversation: made.id });
        expect(!read.length, `${origin}: ${read.join('\n  ')}`);
        await other.close();
      }
    } finally {
      elsewhere.close();
      elsewhere.closeAllConnections();
    }
    const after = await call('GET', `/api/conversations/${made.id}`, undefined, { server, key: ours });
    expect(before.last_seq === after.last_seq, `another page wrote ${after.last_seq - before.last_seq} entries`);
    expect((await call('GET', '/api/conversations?limit=50&kind=all', undefined, { server, key: ours })).data.length === 1, 'another page made a conversation');
    const names = (await call('GET', '/api/keys', undefined, { server, key: ours })).data.map((k) => k.name);
    expect(!names.includes('stolen'), 'another page made a key');
    await page.reload();
    await page.getByText(/demo model/).first().waitFor(); // the session is the person's still
  }, [/.*/]);

  const other = await Walker.begin(browser, { server });
  await other.check('with keys: one project sees nothing of another', async () => {
    await unlock(other, theirs, '/conversations');
    await other.page.getByText('No conversations yet').waitFor();
    for (const path of [`/conversations/${made.id}`, '/conversations/ours', `/conversations/${made.id}/context`, `/conversations/${made.id}/requests/3`]) {
      await other.page.goto(server + path);
      await other.page.getByRole('heading', { name: /Not found|No request was recorded/ }).first().waitFor();
      expect(!(await other.page.content()).includes('quokka'), `${path} shows the other project`);
    }
    await other.page.goto(`${server}/conversations?q=quokka`);
    await other.page.getByText(/nothing|no /i).first().waitFor();
    expect((await other.page.locator('mark').count()) === 0, 'the search finds words of the other project');
    const status = await other.page.evaluate((id) => Promise.all([`/api/conversations/${id}`, `/api/conversations/${id}/entries`, `/api/conversations/${id}/events`, `/api/conversations/${id}/rounds`].map((p) => fetch(p).then((r) => r.status))), made.id);
    expect(status.every((s) => s === 404), `the other project's conversation is answered with ${status}`);
  }, refused);
  await other.end();

  await w.check('with keys: a key is made on Connect, opens a session of its own, and the session is ended', async () => {
    await w.open('/connect');
    await page.getByLabel('Name of the key').fill('phone');
    await page.getByRole('button', { name: 'Make a key' }).click();
    const key = await page.getByRole('status').locator('code').first().textContent();
    expect(/^ctn_[0-9a-z]{12}_/.test(key), `not a key: ${key}`);
    await axe(page, 'Connect with keys');
    const phone = await Walker.begin(browser, { server, viewport: { width: 390, height: 844 } });
    await unlock(phone, key, '/conversations');
    await phone.page.getByRole('link', { name: 'Ours alone' }).waitFor();
    await phone.end();
    const loaded = page.waitForEvent('load'); // the page before may ask for a key, too
    await page.getByRole('button', { name: 'Log out' }).click();
    await loaded;
    await page.getByRole('dialog', { name: 'This server needs a key' }).waitFor();
    expect((await w.context.cookies()).length === 0, 'the cookie is kept');
    const status = await page.evaluate(() => fetch('/api/conversations').then((r) => r.status));
    expect(status === 401, `after logging out the list is answered with ${status}`);
  }, refused);
  await w.end();
}
