// What a call is about, in one line, and how its arguments are best shown.
import { lines, patch, type DiffLine } from './diff';
import { firstLine, plural } from './format';
import { prettyJSON } from './text';

export interface CallView {
  name: string;
  icon: string;
  line: string;
  label: string;
  text?: string;
  json?: string;
  diff?: DiffLine[];
}

export function callName(call: any): string {
  return call?.function?.name ?? call?.custom?.name ?? call?.name ?? 'call';
}

export function callArguments(call: any): string {
  const a = call?.function?.arguments ?? call?.custom?.input ?? call?.arguments ?? '';
  return typeof a === 'string' ? a : JSON.stringify(a);
}

function icon(name: string): string {
  if (/bash|shell|exec|terminal|command|run/i.test(name)) return 'term';
  if (/edit|write|replace|patch|create/i.test(name)) return 'edit';
  if (/search|grep|glob|find/i.test(name)) return 'search';
  if (/read|view|open|cat|file|list|ls/i.test(name)) return 'file';
  if (/web|http|fetch|browse|url/i.test(name)) return 'globe';
  return 'tool';
}

const before = ['old_string', 'oldText', 'old_str', 'old_text'];
const after = ['new_string', 'newText', 'new_str', 'new_text'];

export function viewCall(call: any): CallView {
  const name = callName(call);
  const raw = callArguments(call);
  const v: CallView = { name, icon: icon(name), line: firstLine(raw, 300), label: 'Arguments' };
  let args: any;
  try {
    args = JSON.parse(raw);
  } catch {
    return { ...v, text: raw, diff: patch(raw) ?? undefined };
  }
  if (args === null || typeof args !== 'object' || Array.isArray(args)) return { ...v, json: prettyJSON(raw) ?? undefined, text: raw };
  v.json = JSON.stringify(args, null, 2);
  const path = args.file_path ?? args.path ?? args.filename ?? args.file;
  const command = Array.isArray(args.command) ? args.command.join(' ') : args.command ?? args.cmd;
  const from = before.map((k) => args[k]).find((x) => typeof x === 'string');
  const to = after.map((k) => args[k]).find((x) => typeof x === 'string');
  if (typeof from === 'string' && typeof to === 'string') {
    return { ...v, line: String(path ?? v.line), label: String(path ?? 'Change'), diff: lines(from, to) };
  }
  if (typeof command === 'string') {
    const line = firstLine(command.replace(/^\s*cd\s+\S+\s*&&\s*/, ''), 300);
    return { ...v, line, label: 'Command', text: command, diff: patch(command) ?? undefined };
  }
  for (const k of ['patch', 'diff', 'input']) {
    if (typeof args[k] === 'string') {
      const d = patch(args[k]);
      if (d) return { ...v, line: String(path ?? firstLine(args[k], 300)), label: 'Change', diff: d };
    }
  }
  if (typeof path === 'string' && typeof args.content === 'string') {
    return { ...v, line: `${path} · ${plural(args.content.split('\n').length, 'line')}`, label: path, text: args.content };
  }
  const first = path ?? args.pattern ?? args.query ?? args.url ?? args.prompt ?? args.description;
  if (typeof first === 'string') v.line = firstLine(first, 300);
  else v.line = firstLine(Object.entries(args).map(([k, x]) => `${k}: ${typeof x === 'string' ? x : JSON.stringify(x)}`).join(', '), 300);
  return v;
}

export function failedResult(entry: any): boolean {
  if (!entry) return false;
  if (entry.failed || entry.error) return true;
  const text = typeof entry.content === 'string' ? entry.content.slice(0, 200) : '';
  return /^(error:|Error:|<tool_use_error>)/.test(text) || /exited with code [1-9]/.test(typeof entry.content === 'string' ? entry.content.slice(-200) : '');
}
