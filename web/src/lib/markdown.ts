// Markdown as a tree of plain data, which a component turns into elements: no HTML is ever made of text.
// It reads what models write: headings, lists, tables, code, quotes, emphasis, links. Images are links: nothing is fetched.
export type Inline =
  | { t: 'text'; text: string }
  | { t: 'code'; text: string }
  | { t: 'b'; kids: Inline[] }
  | { t: 'i'; kids: Inline[] }
  | { t: 's'; kids: Inline[] }
  | { t: 'link'; href: string; image: boolean; kids: Inline[] }
  | { t: 'br' };

export type Block =
  | { t: 'p'; kids: Inline[] }
  | { t: 'h'; level: number; kids: Inline[] }
  | { t: 'code'; lang: string; text: string }
  | { t: 'quote'; kids: Block[] }
  | { t: 'list'; ordered: boolean; start: number; items: Block[][] }
  | { t: 'table'; head: Inline[][]; rows: Inline[][][] }
  | { t: 'hr' };

const fence = /^ {0,3}(`{3,}|~{3,})\s*([^`\s]*)/;
const item = /^( {0,3})([-*+]|\d{1,9}[.)])( {1,4}|$)/;
const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const rule = /^ {0,3}([-*_])( *\1){2,} *$/;
const delimiter = /^ {0,3}\|?( *:?-+:? *\|)+ *(:?-+:?)? *$/;

export function markdown(text: string): Block[] {
  return blocks(text.split('\n'), 0);
}

function blocks(lines: string[], depth: number): Block[] {
  const out: Block[] = [];
  let para: string[] = [];
  const flush = () => {
    if (para.length) out.push({ t: 'p', kids: inline(para.join('\n')) });
    para = [];
  };
  for (let i = 0; i < lines.length; ) {
    const line = lines[i];
    const f = fence.exec(line);
    if (f) {
      flush();
      const close = new RegExp(`^ {0,3}${f[1][0]}{${f[1].length},}\\s*$`);
      let end = i + 1;
      while (end < lines.length && !close.test(lines[end])) end++;
      out.push({ t: 'code', lang: f[2], text: lines.slice(i + 1, end).join('\n') });
      i = end + 1;
      continue;
    }
    if (!line.trim()) {
      flush();
      i++;
      continue;
    }
    const h = heading.exec(line);
    if (h) {
      flush();
      out.push({ t: 'h', level: h[1].length, kids: inline(h[2]) });
      i++;
      continue;
    }
    if (rule.test(line)) {
      flush();
      out.push({ t: 'hr' });
      i++;
      continue;
    }
    if (depth < 8 && /^ {0,3}>/.test(line)) {
      flush();
      let end = i;
      while (end < lines.length && /^ {0,3}>/.test(lines[end])) end++;
      out.push({ t: 'quote', kids: blocks(lines.slice(i, end).map((l) => l.replace(/^ {0,3}> ?/, '')), depth + 1) });
      i = end;
      continue;
    }
    if (line.includes('|') && i + 1 < lines.length && lines[i + 1].length < 2000 && delimiter.test(lines[i + 1])) {
      flush();
      let end = i + 2;
      while (end < lines.length && lines[end].includes('|') && lines[end].trim()) end++;
      out.push({ t: 'table', head: cells(line), rows: lines.slice(i + 2, end).map(cells) });
      i = end;
      continue;
    }
    const m = item.exec(line);
    if (m && depth < 8) {
      flush();
      const [list, end] = readList(lines, i, depth);
      out.push(list);
      i = end;
      continue;
    }
    para.push(line);
    i++;
  }
  flush();
  return out;
}

function readList(lines: string[], from: number, depth: number): [Block, number] {
  const first = item.exec(lines[from])!;
  const ordered = /\d/.test(first[2]);
  const items: Block[][] = [];
  let i = from;
  while (i < lines.length) {
    const m = item.exec(lines[i]);
    if (!m || /\d/.test(m[2]) !== ordered || rule.test(lines[i])) break;
    const indent = m[0].length || 2;
    const body = [lines[i].slice(m[0].length)];
    i++;
    while (i < lines.length) {
      const lead = lines[i].length - lines[i].trimStart().length;
      if (!lines[i].trim()) {
        const next = lines[i + 1];
        if (next === undefined || next.length - next.trimStart().length < Math.min(indent, 2)) break;
        body.push('');
      } else if (lead >= Math.min(indent, 2)) body.push(lines[i].slice(Math.min(lead, indent)));
      else if (item.test(lines[i]) || heading.test(lines[i]) || fence.test(lines[i]) || rule.test(lines[i])) break;
      else body.push(lines[i]);
      i++;
    }
    items.push(blocks(body, depth + 1));
    if (i < lines.length && !lines[i].trim() && i + 1 < lines.length && item.test(lines[i + 1])) i++;
  }
  return [{ t: 'list', ordered, start: parseInt(first[2], 10) || 1, items }, i];
}

function cells(line: string): Inline[][] {
  return line.trim().replace(/^\|/, '').replace(/\|$/, '').split(/(?<!\\)\|/).map((c) => inline(c.trim()));
}

const tokens = /(`+)|(\*{1,3}|_{1,3}|~~)|(!?\[)|(https?:\/\/[^\s<>"'`|]+)|(\\[!-/:-@[-`{-~])|( {2,}\n|\n)/g;

export function inline(text: string, depth = 0): Inline[] {
  const out: Inline[] = [];
  let plain = '';
  const flush = () => {
    if (plain) out.push({ t: 'text', text: plain });
    plain = '';
  };
  const put = (n: Inline) => {
    flush();
    out.push(n);
  };
  // Where a marker was once not closed, the rest of the text has no closing one either: this keeps the time linear.
  const open = new Set<string>();
  let from = 0;
  tokens.lastIndex = 0;
  for (let m = tokens.exec(text); m; m = tokens.exec(text)) {
    plain += text.slice(from, m.index);
    from = m.index + m[0].length;
    const next = take(m, text, from, depth, open, put);
    if (next < 0) plain += m[0];
    else from = next;
    tokens.lastIndex = from;
  }
  plain += text.slice(from);
  flush();
  return out;
}

/** Reads what begins with the token m; the answer is where to go on, or -1 if it is plain text. */
function take(m: RegExpExecArray, text: string, from: number, depth: number, open: Set<string>, put: (n: Inline) => void): number {
  if (m[1]) {
    const end = open.has(m[1]) ? -1 : text.indexOf(m[1], from);
    if (end < 0) {
      open.add(m[1]);
      return -1;
    }
    put({ t: 'code', text: text.slice(from, end) });
    return end + m[1].length;
  }
  if (m[2]) return emphasis(m[2], m.index, text, from, depth, open, put);
  if (m[3]) return link(m[3], text, from, depth, open, put);
  if (m[4]) {
    const url = m[4].replace(/[.,;:!?)\]}*_]+$/, '');
    put({ t: 'link', href: url, image: false, kids: [{ t: 'text', text: url }] });
    return m.index + url.length;
  }
  if (m[5]) {
    put({ t: 'text', text: m[5][1] });
    return from;
  }
  put({ t: 'br' });
  return from;
}

function emphasis(mark: string, at: number, text: string, from: number, depth: number, open: Set<string>, put: (n: Inline) => void): number {
  if (depth > 6 || open.has(mark) || /\s/.test(text[from] ?? ' ')) return -1;
  if (mark[0] === '_' && /\w/.test(text[at - 1] ?? ' ')) return -1;
  let end = text.indexOf(mark, from);
  while (end > 0 && (/\s/.test(text[end - 1]) || (mark.length === 1 && text[end + 1] === mark))) end = text.indexOf(mark, end + mark.length + 1);
  if (end <= from) {
    open.add(mark);
    return -1;
  }
  const kids = inline(text.slice(from, end), depth + 1);
  if (mark === '~~') put({ t: 's', kids });
  else if (mark.length === 1) put({ t: 'i', kids });
  else if (mark.length === 2) put({ t: 'b', kids });
  else put({ t: 'b', kids: [{ t: 'i', kids }] });
  return end + mark.length;
}

function link(mark: string, text: string, from: number, depth: number, open: Set<string>, put: (n: Inline) => void): number {
  if (depth > 6 || open.has(mark)) return -1;
  const mid = text.indexOf('](', from);
  if (mid < 0) {
    open.add(mark);
    return -1;
  }
  const end = text.indexOf(')', mid + 2);
  if (end < 0 || mid - from > 1000 || end - mid > 3000) return -1;
  const href = text.slice(mid + 2, end).trim().split(/\s+"/)[0];
  const label = text.slice(from, mid);
  const kids: Inline[] = mark === '![' ? [{ t: 'text', text: label || 'image' }] : inline(label, depth + 1);
  put({ t: 'link', href, image: mark === '![', kids });
  return end + 1;
}

/** Only addresses that a browser opens as a page or a mail become links. */
export function safeHref(href: string): string | null {
  try {
    const u = new URL(href);
    return u.protocol === 'http:' || u.protocol === 'https:' || u.protocol === 'mailto:' ? u.href : null;
  } catch {
    return null;
  }
}
