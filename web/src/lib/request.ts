// A request in any of the protocols as a list of parts: system texts, tools and messages, each with its place in the bytes.
import { conv, get, getText } from './api';
import { callArguments, callName } from './calls';
import { estimate } from './format';
import { elements, members, type RawSpan } from './rawjson';
import { contentText } from './text';

export interface Part {
  kind: 'system' | 'tool' | 'message';
  role: string;
  name: string;
  text: string;
  raw: string;
  /** Place in the request, in characters of raw; -1 where it is not known. */
  start: number;
  end: number;
  tokens: number;
  /** The entry that it was made of; 0 where none, or not known. */
  seq: number;
}

export interface Shown {
  plan: any;
  body: any;
  raw: string;
  parts: Part[];
  round: any | null;
  sha256: string;
  same: boolean | null;
  redacted: number[];
  previous: number;
  sharedBytes: number;
}

function messageText(m: any): string {
  const bits: string[] = [];
  const content = m?.content ?? m?.parts ?? m?.output ?? m?.text;
  if (Array.isArray(content)) {
    for (const p of content) {
      if (typeof p === 'string') bits.push(p);
      else if (typeof p?.text === 'string') bits.push(p.text);
      else if (p?.type === 'tool_use') bits.push(`calls ${p.name} ${JSON.stringify(p.input)}`);
      else if (p?.type === 'tool_result') bits.push(contentText(p.content));
      else if (p?.functionCall) bits.push(`calls ${p.functionCall.name} ${JSON.stringify(p.functionCall.args)}`);
      else if (p?.functionResponse) bits.push(JSON.stringify(p.functionResponse.response));
      else if (p?.type) bits.push(`[${p.type}]`);
    }
  } else if (content != null) bits.push(contentText(content));
  for (const c of m?.tool_calls ?? []) bits.push(`calls ${callName(c)} ${callArguments(c)}`);
  if (m?.type === 'function_call') bits.push(`calls ${m.name} ${m.arguments}`);
  return bits.filter(Boolean).join('\n');
}

function part(kind: Part['kind'], role: string, name: string, text: string, raw: string, at: RawSpan): Part {
  const own = raw.slice(at.start, at.end);
  return { kind, role, name, text, raw: own, start: at.start, end: at.end, tokens: estimate(own.length), seq: 0 };
}

function roleOf(m: any): string {
  if (m?.type === 'function_call') return 'assistant';
  if (m?.type === 'function_call_output') return 'tool';
  if (Array.isArray(m?.content) && m.content.some((p: any) => p?.type === 'tool_result')) return 'tool';
  return m?.role === 'model' ? 'assistant' : (m?.role ?? m?.type ?? 'message');
}

export function partsOf(raw: string): Part[] {
  const out: Part[] = [];
  const top = members(raw);
  const list = (name: string) => (top.has(name) ? elements(raw, top.get(name)!.start) : []);
  const value = (s: RawSpan) => JSON.parse(raw.slice(s.start, s.end));
  for (const name of ['system', 'instructions', 'systemInstruction', 'system_instruction']) {
    const at = top.get(name);
    if (!at) continue;
    const blocks = elements(raw, at.start);
    if (blocks.length) for (const b of blocks) out.push(part('system', 'system', '', contentText(value(b)), raw, b));
    else out.push(part('system', 'system', '', messageText(value(at)?.parts ? value(at) : { content: value(at) }), raw, at));
  }
  for (const at of list('tools')) {
    const t = value(at);
    for (const f of t.functionDeclarations ?? t.function_declarations ?? [t.function ?? t]) {
      out.push(part('tool', 'tool', String(f.name ?? f.type ?? ''), String(f.description ?? ''), raw, at));
    }
  }
  for (const name of ['messages', 'input', 'contents']) {
    for (const at of list(name)) {
      const m = value(at);
      const role = roleOf(m);
      const kind = role === 'system' || role === 'developer' ? 'system' : 'message';
      out.push(part(kind, role, '', messageText(m), raw, at));
    }
  }
  return out.sort((a, b) => order[a.kind] - order[b.kind]);
}

const order = { system: 0, tool: 1, message: 2 };

/** Takes the server's sizes and entries of the parts: their tokens add up to what the plan says of the request. */
function refine(parts: Part[], given: any[] | undefined) {
  const left: Record<string, any[]> = { system: [], tool: [], message: [] };
  for (const g of given ?? []) (left[g.kind] ?? left.message).push(g);
  for (const p of parts) {
    const g = left[p.kind].shift();
    if (!g) continue;
    p.tokens = g.tokens ?? 0;
    p.seq = g.seq ?? 0;
    p.name ||= g.name ?? '';
  }
}

/** The request that an answer was given to, byte for byte. */
export async function sentRequest(id: string, seq: number): Promise<Shown> {
  const text = await getText(`${conv(id)}/entries/${seq}/request`);
  const d = JSON.parse(text);
  const at = members(text).get('body');
  const raw = at ? text.slice(at.start, at.end) : '';
  const parts = partsOf(raw);
  refine(parts, d.parts);
  return {
    plan: d.plan ?? null, body: d.body, raw, parts, round: d.round, sha256: d.sha256, same: d.same ?? null, redacted: d.redacted ?? [],
    previous: d.previous ?? 0, sharedBytes: d.shared_bytes ?? -1,
  };
}

/** What a request would be, under other limits or in another view; no model is asked. */
export async function wouldBe(id: string, params: Record<string, string>): Promise<Shown> {
  const q = new URLSearchParams({ system: 'true', ...params });
  const d = await get(`${conv(id)}/context?${q}`);
  const body = d.messages ? { messages: d.messages, ...(d.tools ? { tools: d.tools } : {}) } : { text: d.text };
  const raw = JSON.stringify(body);
  const parts = partsOf(raw);
  refine(parts, d.parts);
  return { plan: d.plan, body, raw, parts, round: null, sha256: '', same: null, redacted: [], previous: 0, sharedBytes: d.plan.totals.shared_bytes ?? -1 };
}

/** Whether the bytes have the hash that the log recorded; null where this page may not compute one. */
export async function proves(raw: string, sha256: string): Promise<boolean | null> {
  if (!globalThis.crypto?.subtle || !sha256) return null;
  const sum = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(raw));
  return [...new Uint8Array(sum)].map((b) => b.toString(16).padStart(2, '0')).join('') === sha256;
}

/** How many characters two requests have in common from their beginning. */
export function sharedPrefix(a: string, b: string): number {
  const n = Math.min(a.length, b.length);
  let i = 0;
  while (i < n && a.charCodeAt(i) === b.charCodeAt(i)) i++;
  return i;
}

/** What a block of recalled entries shows of each, by seq: a line with its number begins an entry, indented ones go on with it. */
export function passages(block: string): Map<number, string> {
  const out = new Map<number, string>();
  let seq = 0;
  for (const row of block.split('\n')) {
    const begins = /^(\d+) [^:]*: ?(.*)$/.exec(row);
    if (begins) out.set((seq = Number(begins[1])), begins[2]);
    else if (seq && /^\s/.test(row)) out.set(seq, `${out.get(seq)}\n${row.trim()}`);
    else seq = 0;
  }
  return out;
}

const paths: [RegExp, string, string][] = [
  [/anthropic/, '$BASE_URL/v1/messages', '-H "x-api-key: $API_KEY" -H "anthropic-version: 2023-06-01"'],
  [/responses/, '$BASE_URL/responses', '-H "Authorization: Bearer $API_KEY"'],
  [/gemini|google/, '$BASE_URL/models/$MODEL:streamGenerateContent?alt=sse', '-H "x-goog-api-key: $API_KEY"'],
  [/./, '$BASE_URL/chat/completions', '-H "Authorization: Bearer $API_KEY"'],
];

export function curl(raw: string, protocol: string): string {
  const [, url, auth] = paths.find(([re]) => re.test(protocol || 'openai'))!;
  return `curl -sN "${url}" ${auth} -H "Content-Type: application/json" --data-raw '${raw.replaceAll("'", "'\\''")}'\n`;
}

export const verdicts = ['kept', 'previewed', 'truncated', 'summarized', 'recalled', 'dropped', 'excluded'] as const;
export const letters: Record<string, string> = { kept: 'K', previewed: 'P', truncated: 'L', summarized: 'S', recalled: 'R', dropped: 'D', excluded: 'X', client: 'C' };
export const verdictWords: Record<string, string> = { kept: 'kept', previewed: 'previewed', truncated: 'one line', summarized: 'summarised', recalled: 'recalled', dropped: 'dropped', excluded: 'excluded', client: 'by the client' };
const reasons: Record<string, string> = {
  latest_user: 'newest message of a user', open_group: 'open calls', unanswered_call: 'call without a result', in_window: 'in the window', opener: 'first message',
  pinned: 'pinned', profile: 'known of the user', memory_off: 'the turn is without memory', profile_removed: 'removed since', client: 'sent by the client itself', over_output_limit: 'long output', tool_results_off: 'view shows results as a line',
  over_messages: 'limit on messages', over_chars: 'limit on characters', over_tokens: 'limit on tokens', before_window: 'before the window', summary: 'a summary covers it',
  ui_only: 'for people only', deleted: 'deleted by the client', empty: 'no content', thinking: 'reasoning only', system_prompt: 'system entry', collapsed: 'collapsed entry',
  placeholder: 'placeholder of an import', orphan_tool_result: 'result without a call', failed_attempt: 'failed attempt', over_message_chars: 'long text', in_one_line: 'calls in one line',
  text_only: 'text only', new: 'new to the role', seen: 'seen before', original_request: 'original request', own_message: 'its own message', failed_answer: 'failed answer',
  before_reset: 'before a reset', after_ask: 'after the role was asked', next_turn: 'next turn', notes: 'in its notes', catch_up: 'in a catch-up',
  read_again: 'read again later', failed_call: 'failed, and done again later', image_described: 'an image that was answered',
  dropped_by_client: 'the client does not have it', recall: 'shown again: the message needs it', not_recalled: 'the question does not need it',
};
export function why(reason: string): string {
  return reasons[reason] ?? reason.replaceAll('_', ' ');
}
