// Text of others is shown as what it is: nothing in it may act on the page or mislead the eye.
export interface Piece {
  text: string;
  /** A control character, shown by its name. */
  mark?: boolean;
  /** Classes for the colours of a terminal. */
  cls?: string;
}

const names: Record<number, string> = {
  0x00ad: 'SHY', 0x061c: 'ALM', 0x180e: 'MVS', 0x200b: 'ZWSP', 0x200e: 'LRM', 0x200f: 'RLM', 0x2028: 'LS', 0x2029: 'PS', 0x202a: 'LRE',
  0x202b: 'RLE', 0x202c: 'PDF', 0x202d: 'LRO', 0x202e: 'RLO', 0x2060: 'WJ', 0x2066: 'LRI', 0x2067: 'RLI', 0x2068: 'FSI', 0x2069: 'PDI', 0xfeff: 'BOM',
};
const controls = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]|\r(?!\n)/;
const escapes = /\u001b\[([0-9;:?]*)([@-~])|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-Z\\-_]/g;

function name(code: number): string {
  if (names[code]) return names[code];
  if (code === 0x1b) return 'ESC';
  return code < 0x20 ? `^${String.fromCharCode(code + 64)}` : `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

function mark(text: string, out: Piece[], cls = '') {
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    if (!controls.test(text.charAt(i)) || (text[i] === '\r' && text[i + 1] === '\n')) continue;
    if (i > from) out.push({ text: text.slice(from, i), cls });
    out.push({ text: name(text.charCodeAt(i)), mark: true });
    from = i + 1;
  }
  if (from < text.length) out.push({ text: text.slice(from), cls });
}

/** Splits text so that control and direction characters are named instead of obeyed. */
export function pieces(text: string): Piece[] {
  if (!controls.test(text)) return [{ text }];
  const out: Piece[] = [];
  mark(text, out);
  return out;
}

/** As pieces, with the colours of a terminal; what else an escape sequence asks for is named. */
export function terminal(text: string): Piece[] {
  if (!controls.test(text)) return [{ text }];
  const out: Piece[] = [];
  let from = 0;
  let state = { fg: '', bold: false };
  const cls = () => [state.fg && `t-${state.fg}`, state.bold && 't-b'].filter(Boolean).join(' ');
  for (const m of text.matchAll(escapes)) {
    if (m.index > from) mark(text.slice(from, m.index), out, cls());
    from = m.index + m[0].length;
    if (m[2] === 'm') state = colour(m[1], state);
    else out.push({ text: m[0].replace('\u001b', 'ESC ').slice(0, 80), mark: true });
  }
  if (from < text.length) mark(text.slice(from), out, cls());
  return out;
}

function colour(codes: string, was: { fg: string; bold: boolean }) {
  const now = { ...was };
  const list = codes.split(/[;:]/).map(Number);
  for (let i = 0; i < list.length; i++) {
    const c = list[i];
    if (!c) Object.assign(now, { fg: '', bold: false });
    else if (c === 1) now.bold = true;
    else if (c === 22) now.bold = false;
    else if (c >= 30 && c <= 37) now.fg = String(c - 30);
    else if (c >= 90 && c <= 97) now.fg = String(c - 90);
    else if (c === 39) now.fg = '';
    else if (c === 38 || c === 48) i += list[i + 1] === 5 ? 2 : 4;
  }
  return now;
}

/** JSON laid out with two spaces, or null where the text is not an object or a list. */
export function prettyJSON(text: string): string | null {
  const s = text.trim();
  if (!(s.startsWith('{') || s.startsWith('['))) return null;
  try {
    return JSON.stringify(JSON.parse(s), null, 2);
  } catch {
    return null;
  }
}

/** The text of a message's content, whatever its form. */
export function contentText(content: any): string {
  if (content == null) return '';
  if (typeof content === 'string') return content;
  if (Array.isArray(content)) return content.map((p) => (typeof p === 'string' ? p : p?.text ?? (p?.type ? `[${p.type}]` : ''))).join('\n');
  if (typeof content === 'object' && typeof content.text === 'string') return content.text;
  return JSON.stringify(content);
}

/** What a role of a crew says that has nothing to add. */
export const nothing = '.....';
