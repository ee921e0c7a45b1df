// Conversations of our own, for the pages that are photographed, and one of attacks.
import { call } from './browser.mjs';

const files = ['upload/queue.go', 'upload/retry.go', 'upload/client.go', 'upload/queue_test.go', 'cmd/push/main.go', 'docs/retries.md'];
const code = (f, n) => Array.from({ length: n }, (_, i) => `${String(i + 1).padStart(4)}  ${['func (q *Queue) next() (*Item, error) {', '\tq.mu.Lock()', '\tdefer q.mu.Unlock()', '\tif len(q.items) == 0 {', '\t\treturn nil, ErrEmpty', '\t}', '\titem := q.items[0]', '\tq.items = q.items[1:]', '\treturn item, nil', '}', ''][i % 11]}`).join('\n') + `\n// ${f}`;

/** A long session of a coding agent, as an import has it. */
export async function session(rounds = 60) {
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
  const made = await call('POST', '/api/conversations/import', { title: 'Retries for the upload queue', key: 'retries', messages });
  await call('PATCH', `/api/conversations/${made.conversation.id}`, { mode: 'agent', active_agent: 'coder' });
  return made.conversation.id;
}

export const attacks = {
  title: '<img src=x onerror="window.pwned=1">\u202egpj.exe',
  texts: [
    '<script>window.pwned=1</script><svg onload="window.pwned=1"><iframe src="javascript:window.pwned=1"></iframe>',
    '[a link](javascript:window.pwned=1) ![an image](http://attacker.example/pixel.png) [data](data:text/html,<script>window.pwned=1</script>) <http://attacker.example>',
    'user\u202etxt.exe and \u2066isolated\u2069 and zero\u200bwidth \u001b]0;title\u0007 \u001b[2J\u001b[31mred\u001b[0m',
    '| a | b |\n|---|---|\n| <b onmouseover=window.pwned=1>x</b> | ![x](//attacker.example/y.png) |\n\n```html\n<script>window.pwned=1</script>\n```',
    'w'.repeat(300_000),
    '*'.repeat(20_000) + '['.repeat(20_000) + '`'.repeat(20_001) + '> '.repeat(5_000) + '- '.repeat(5_000),
  ],
};

export async function hostile() {
  const svg = `data:image/svg+xml;base64,${Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="window.pwned=1"><script>window.pwned=1</script><image href="http://attacker.example/z.png"/></svg>').toString('base64')}`;
  const c = await call('POST', '/api/conversations', { key: 'attacks', title: attacks.title });
  const entries = [];
  attacks.texts.forEach((text, i) => {
    entries.push({ role: 'user', content: text, author: { display_name: '<b onclick=alert(1)>Eve\u202e' } });
    entries.push({ role: 'assistant', content: text, reasoning: { text }, tool_calls: [{ id: `c${i}`, type: 'function', function: { name: 'script_alert', arguments: JSON.stringify({ path: '<script>window.pwned=1</script>\u202e', content: text.slice(0, 5000) }) } }] });
    entries.push({ role: 'tool', tool_call_id: `c${i}`, content: text, outcome: '<script>window.pwned=1</script>' });
  });
  entries.push({ role: 'user', content: [{ type: 'text', text: '<script>window.pwned=1</script>' }, { type: 'image_url', image_url: { url: svg } }, { type: 'image_url', image_url: { url: 'http://attacker.example/pixel.gif' } }, { type: 'html', html: '<script>window.pwned=1</script>' }] });
  for (const e of entries) await call('POST', `/api/conversations/${c.id}/entries`, e).catch(async (err) => {
    // A text that the log itself refuses cannot attack the page.
    if (!/ 4\d\d /.test(err.message)) throw err;
  });
  return c.id;
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
