// Where the values of a JSON text begin and end: the bytes of a request are shown as they were sent, not as a parser
// would write them again.
export interface RawSpan {
  start: number;
  end: number;
}

function space(s: string, i: number): number {
  while (s[i] === ' ' || s[i] === '\n' || s[i] === '\t' || s[i] === '\r') i++;
  return i;
}

/** The end of the text that begins with the quote at i. */
function stringEnd(s: string, i: number): number {
  for (let q = s.indexOf('"', i + 1); q >= 0; q = s.indexOf('"', q + 1)) {
    let slashes = 0;
    while (s[q - 1 - slashes] === '\\') slashes++;
    if (slashes % 2 === 0) return q + 1;
  }
  return s.length;
}

export function valueEnd(s: string, i: number): number {
  if (s[i] === '"') return stringEnd(s, i);
  if (s[i] !== '{' && s[i] !== '[') {
    while (i < s.length && !/[,\]}\s]/.test(s[i])) i++;
    return i;
  }
  let depth = 0;
  for (; i < s.length; i++) {
    const c = s[i];
    if (c === '"') i = stringEnd(s, i) - 1;
    else if (c === '{' || c === '[') depth++;
    else if ((c === '}' || c === ']') && --depth === 0) return i + 1;
  }
  return i;
}

/** The members of the object at i. */
export function members(s: string, i = 0): Map<string, RawSpan> {
  const out = new Map<string, RawSpan>();
  i = space(s, i);
  if (s[i] !== '{') return out;
  i = space(s, i + 1);
  while (i < s.length && s[i] === '"') {
    const end = stringEnd(s, i);
    const name = JSON.parse(s.slice(i, end)) as string;
    i = space(s, space(s, end) + 1);
    const to = valueEnd(s, i);
    out.set(name, { start: i, end: to });
    i = space(s, to);
    if (s[i] !== ',') break;
    i = space(s, i + 1);
  }
  return out;
}

/** The elements of the list at i. */
export function elements(s: string, i: number): RawSpan[] {
  const out: RawSpan[] = [];
  if (s[i] !== '[') return out;
  i = space(s, i + 1);
  while (i < s.length && s[i] !== ']') {
    const end = valueEnd(s, i);
    out.push({ start: i, end });
    i = space(s, end);
    if (s[i] !== ',') break;
    i = space(s, i + 1);
  }
  return out;
}
