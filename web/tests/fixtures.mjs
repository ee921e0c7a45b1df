// Conversations of our own, for the pages that are photographed, and one of attacks.
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { base, call } from './browser.mjs';

const files = ['upload/queue.go', 'upload/retry.go', 'upload/client.go', 'upload/queue_test.go', 'cmd/push/main.go', 'docs/retries.md'];
const code = (f, n) => Array.from({ length: n }, (_, i) => `${String(i + 1).padStart(4)}  ${['func (q *Queue) next() (*Item, error) {', '\tq.mu.Lock()', '\tdefer q.mu.Unlock()', '\tif len(q.items) == 0 {', '\t\treturn nil, ErrEmpty', '\t}', '\titem := q.items[0]', '\tq.items = q.items[1:]', '\treturn item, nil', '}', ''][i % 11]}`).join('\n') + `\n// ${f}`;

/** A long session of a coding agent, as an import has it. */
export async function session(key = 'retries', rounds = 60) {
  const messages = [];
  let n = 0;
  const id = () => `call_${++n}`;
  const tool = (name, args, output) => ({ call: { id: id(), type: 'function', function: { name, arguments: JSON.stringify(args) } }, output });
  const say = (content, ...tools) => {
    messages.push({ role: 'assistant', content, ...(tools.length ? { tool_calls: tools.map((t) => t.call) } : {}) });
    for (const t of tools) messages.push({ role: 'tool', tool_call_id: t.call.id, content: t.output });
  };
  messages.push({ role: 'user', content: 'Uploads that fail are lost. Give the queue retries with a growing pause, and keep the order of the items.' });
  say('I read the queue and its client first.', tool('read', { path: files[0] }, code(files[0], 90)), tool('read', { path: files[2] }, code(files[2], 140)), tool('bash', { command: 'cd ~/push && grep -rn "ErrEmpty" --include=*.go .' }, './upload/queue.go:12: ErrEmpty\n./upload/queue_test.go:40: ErrEmpty'));
  for (let i = 0; i < rounds; i++) {
    const f = files[i % files.length];
    if (i % 6 === 5) messages.push({ role: 'user', content: ['Does the order hold when two items fail at once?', 'Write a test for that first.', 'The pause should never be longer than a minute.', 'Say what changed in one list.'][Math.floor(i / 6) % 4] });
    if (i % 3 === 0) say(`Now ${f}.`, tool('read', { path: f }, code(f, 20 + ((i * 37) % 160))));
    else if (i % 3 === 1)
      say('', tool('edit', { path: f, oldText: 'func wait(n int) time.Duration {\n\treturn time.Second\n}', newText: `func wait(n int) time.Duration {\n\tpause := time.Second << min(n, ${i % 7})\n\treturn min(pause, time.Minute)\n}` }, `Replaced 1 place in ${f}`));
    else say('The tests say whether it holds:', tool('bash', { command: `cd ~/push && go test ./upload -run Retry/${i}` }, i % 4 ? `ok  \texample/push/upload\t0.${10 + i}s` : `\u001b[31m--- FAIL: TestRetry/${i}\u001b[0m\n    queue_test.go:${40 + i}: item 2 came before item 1\nFAIL\tCommand exited with code 1`));
  }
  say('The queue keeps its order now, also while items wait for their next attempt:\n\n1. **`retry.go`** has the pause: it doubles up to a minute.\n2. `queue.go` puts an item back *where it was*.\n\n| case | before | now |\n|---|---|---|\n| one failure | lost | sent after 1 s |\n| two at once | lost | sent in order |\n\n```go\npause := time.Second << min(n, 6)\n```\n\nShall I write the release note?');
  const made = await call('POST', '/api/conversations/import', { title: 'Retries for the upload queue', key, messages });
  await call('PATCH', `/api/conversations/${made.conversation.id}`, { mode: 'agent', active_agent: 'coder' });
  return made.conversation.id;
}

const script = '<script>window.pwned=1</script>';
const image = '<img src=x onerror="window.pwned=1">';

export const attacks = {
  title: `${image}\u202egpj.exe`,
  name: '<b onclick=alert(1)>Eve\u202e',
  texts: [
    `${script}<svg onload="window.pwned=1"><iframe src="javascript:window.pwned=1"></iframe>`,
    `[a link](javascript:window.pwned=1) ![an image](http://attacker.example/pixel.png) [data](data:text/html,${script}) <http://attacker.example> [title](http://attacker.example "onmouseover=window.pwned=1") <javascript:window.pwned=1>`,
    'user\u202etxt.exe pwned and \u2066isolated\u2069 and zero\u200bwidth \u001b]0;title\u0007 \u001b[2J\u001b[31mred\u001b[0m \u001b]8;;javascript:window.pwned=1\u0007link\u001b]8;;\u0007',
    `| a | b |\n|---|---|\n| <b onmouseover=window.pwned=1>x</b> | ![x](//attacker.example/y.png) |\n\n\`\`\`html\n${script}\n\`\`\`\n\n\`\`\`"onclick="window.pwned=1\n${script}\n\`\`\``,
    `pwned ${'w'.repeat(1_000_000)}`,
    `pwned ${'a line without an end '.repeat(50_000)}`,
    `pwned ${'*'.repeat(20_000)}${'['.repeat(20_000)}${'`'.repeat(20_001)}${'> '.repeat(5_000)}${'- '.repeat(5_000)}${'![]('.repeat(5_000)}`,
  ],
  addresses: [
    '/conversations/%3Cscript%3Ewindow.pwned=1%3C%2Fscript%3E', '/conversations?q=%3Cimg+src%3Dx+onerror%3D%22window.pwned%3D1%22%3E&mode=%3Cscript%3E',
    '/compare?left=javascript:window.pwned=1&right=%22%3E%3Cscript%3E', '/runs/javascript:window.pwned=1', '/crews/%22onload=%22window.pwned=1', '/tasks/%3Cimg%20src=x%20onerror=%22window.pwned=1%22%3E',
  ],
};

/** Attacks in every field that a person, a client or a model fills, and where they are to be seen. */
export async function hostile() {
  const svg = `data:image/svg+xml;base64,${Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" onload="window.pwned=1">${script}<image href="http://attacker.example/z.png"/></svg>`).toString('base64')}`;
  const c = await call('POST', '/api/conversations', { key: 'attacks', title: attacks.title, metadata: { [script]: image } });
  let last = 0;
  const append = async (e) => {
    // A text that the log itself refuses cannot attack the page.
    const made = await call('POST', `/api/conversations/${c.id}/entries`, e).catch((err) => {
      if (!/ 4\d\d /.test(err.message)) throw err;
    });
    last = made?.entries.at(-1).seq ?? last;
  };
  for (const [i, text] of attacks.texts.entries()) {
    await append({ role: 'user', content: text, author: { display_name: attacks.name } });
    await append({ role: 'assistant', content: text, reasoning: { text: text.slice(0, 50_000) }, tool_calls: [{ id: `c${i}`, type: 'function', function: { name: i % 2 ? 'edit' : 'script_alert', arguments: JSON.stringify({ path: `${script}\u202e`, oldText: text.slice(0, 500), newText: script, command: image, content: text.slice(0, 5000) }) } }] });
    await append({ role: 'tool', tool_call_id: `c${i}`, content: text, outcome: script });
  }
  await append({ role: 'user', content: [{ type: 'text', text: script }, { type: 'image_url', image_url: { url: svg } }, { type: 'image_url', image_url: { url: 'http://attacker.example/pixel.gif' } }, { type: 'html', html: script }, { type: 'file', file: { filename: `${image}.html`, file_data: `data:text/html;base64,${Buffer.from(script).toString('base64')}` } }] });
  // Two answers, each with the request that it got: an attack that the upstream sends, and one in its refusal.
  for (const asked of [`answer with an attack ${script}`, `refuse with an attack ${script}`]) {
    await call('POST', '/chat', { session_id: c.id, model: 'sonnet', message: asked }).catch((err) => {
      if (!/window.pwned/.test(err.message)) throw err;
    });
  }
  const requests = (await call('GET', `/api/conversations/${c.id}/rounds?limit=50`)).data.map((r) => r.seq).sort((a, b) => a - b);
  await call('POST', '/api/crews/example/messages', { session_id: 'attack', message: `${script} ${image}`, author: { display_name: attacks.name } });
  const run = await call('POST', '/api/runs', { workflow_id: 'release-notes', inputs: { version: image, changes: attacks.texts[0] } });
  const task = await call('POST', '/api/tasks', { description: `${image} ${attacks.texts[1]}`, conversation_history: c.id });
  const forwarded = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST', headers: { 'User-Agent': `${script}/1.0 ${image}`, 'X-Session-Id': image },
    body: JSON.stringify({ model: 'sonnet', messages: [{ role: 'system', content: script }, { role: 'user', content: attacks.texts[0], name: 'Eve' }], metadata: { title: image } }),
  });
  return { conversation: c.id, last, requests, crew: 'example?session=attack', run: run.id, task: task.task_id, forwarded: forwarded.headers.get('X-Conversation-ID') };
}

/** What is known of a user, with the words that it was taken from; gives the address of the page. */
export async function known() {
  const user_id = 'ben';
  const c = await call('POST', '/api/conversations', { key: 'known', title: 'How uploads should work', user_id });
  const said = ['I prefer metric units and answers in one paragraph.', 'We decided that an upload is tried again for a minute at most.', 'My timezone is Lisbon, and I work on the upload queue.'];
  await call('POST', `/api/conversations/${c.id}/entries`, { entries: said.map((content) => ({ role: 'user', content })) });
  const facts = [['Ben prefers metric units', 'preference', 1, 'I prefer metric units'], ['Ben wants answers in one paragraph', 'instruction', 1, 'answers in one paragraph'],
    ['An upload is tried again for a minute at most', 'decision', 2, 'an upload is tried again for a minute at most'], ['Ben works on the upload queue', 'identity', 3, 'I work on the upload queue']];
  for (const [text, kind, seq, quote] of facts) await call('POST', `/api/memory?user_id=${user_id}`, { text, kind, sources: [{ conversation_id: c.id, seq, quote }] });
  return `/memory?of=user:${user_id}`;
}

/** A conversation of n entries. */
export async function long(n) {
  const c = await call('POST', '/api/conversations', { key: 'long', title: `${n} entries` });
  for (let from = 0; from < n; from += 1000) {
    const entries = Array.from({ length: Math.min(1000, n - from) }, (_, i) => ({ role: (from + i) % 2 ? 'assistant' : 'user', content: `Entry ${from + i + 1}: ${'words of it '.repeat(((from + i) * 7) % 23)}${from + i + 1 === 777 ? ' findme-pangolin' : ''}` }));
    await call('POST', `/api/conversations/${c.id}/entries`, { entries });
  }
  return c.id;
}

/** Conversations that others have recorded: the lines of a file of the test data that are wanted. */
export function recorded(file, wanted) {
  const lines = gunzipSync(readFileSync(`${process.env.INSPECTOR_DATA}/${file}.jsonl.gz`)).toString().split('\n');
  return lines.filter(Boolean).map((l) => JSON.parse(l)).filter(wanted);
}

/** Puts a recorded conversation into the log, and gives its id. */
export async function imported(c, title, key) {
  const made = await call('POST', '/api/conversations/import', { title, key, messages: c.messages });
  return made.conversation.id;
}

/** Sends the recorded requests of an agent's session, as the agent did. */
export async function replay(agent, scenario) {
  for (const r of recorded(`agent-traffic/${agent}`, (l) => l.scenario === scenario && l.method === 'POST' && l.status === 200)) {
    const headers = Object.fromEntries(Object.entries(r.request_headers).filter(([name]) => !/^(host|content-length|connection|accept-encoding|transfer-encoding|expect)$/i.test(name)));
    const res = await fetch(base + r.path, { method: 'POST', headers, body: r.request_body });
    const text = await res.text();
    if (res.status !== 200) throw new Error(`${agent} ${scenario} ${r.seq}: ${res.status} ${text.slice(0, 300)}`);
  }
}
