// Differences of lists of lines, for changes of files.
export interface Op<T> {
  op: 'equal' | 'left' | 'right';
  left?: T;
  right?: T;
}

/** Myers' algorithm on what equal says; beyond max differences, everything between the common ends is replaced. */
export function diff<T>(a: T[], b: T[], equal: (x: T, y: T) => boolean = (x, y) => x === y, max = 1500): Op<T>[] {
  let head = 0;
  while (head < a.length && head < b.length && equal(a[head], b[head])) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && equal(a[a.length - 1 - tail], b[b.length - 1 - tail])) tail++;
  const out: Op<T>[] = [];
  for (let i = 0; i < head; i++) out.push({ op: 'equal', left: a[i], right: b[i] });
  out.push(...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail), equal, max));
  for (let i = tail; i > 0; i--) out.push({ op: 'equal', left: a[a.length - i], right: b[b.length - i] });
  return out;
}

function middle<T>(a: T[], b: T[], equal: (x: T, y: T) => boolean, max: number): Op<T>[] {
  const replaced = (): Op<T>[] => [...a.map((left): Op<T> => ({ op: 'left', left })), ...b.map((right): Op<T> => ({ op: 'right', right }))];
  if (!a.length || !b.length) return replaced();
  const limit = Math.min(max, a.length + b.length);
  const v = new Map<number, number>([[1, 0]]);
  const trace: Map<number, number>[] = [];
  for (let d = 0; d <= limit; d++) {
    trace.push(new Map(v));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1)) ? (v.get(k + 1) ?? 0) : (v.get(k - 1) ?? -1) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && equal(a[x], b[y])) {
        x++;
        y++;
      }
      v.set(k, x);
      if (x >= a.length && y >= b.length) return back(a, b, trace, d);
    }
  }
  return replaced();
}

function back<T>(a: T[], b: T[], trace: Map<number, number>[], d: number): Op<T>[] {
  const out: Op<T>[] = [];
  let x = a.length;
  let y = b.length;
  for (; d > 0; d--) {
    const v = trace[d];
    const k = x - y;
    const down = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1));
    const pk = down ? k + 1 : k - 1;
    const px = v.get(pk)!;
    const py = px - pk;
    while (x > px && y > py) out.push({ op: 'equal', left: a[--x], right: b[--y] });
    if (down) out.push({ op: 'right', right: b[--y] });
    else out.push({ op: 'left', left: a[--x] });
  }
  while (x > 0 && y > 0) out.push({ op: 'equal', left: a[--x], right: b[--y] });
  return out.reverse();
}

export interface DiffLine {
  cls: '' | 'a' | 'd' | 'h';
  text: string;
}

/** The lines of a change, with three lines around each. */
export function lines(before: string, after: string): DiffLine[] {
  const ops = diff(before.split('\n'), after.split('\n'), undefined, 800);
  const near = ops.map((_, i) => ops.slice(Math.max(0, i - 3), i + 4).some((o) => o.op !== 'equal'));
  const out: DiffLine[] = [];
  let gap = 0;
  ops.forEach((o, i) => {
    if (!near[i]) {
      gap++;
      return;
    }
    if (gap) out.push({ cls: 'h', text: `… ${gap} equal lines` });
    gap = 0;
    if (o.op === 'equal') out.push({ cls: '', text: ` ${o.left}` });
    else if (o.op === 'left') out.push({ cls: 'd', text: `-${o.left}` });
    else out.push({ cls: 'a', text: `+${o.right}` });
  });
  if (gap) out.push({ cls: 'h', text: `… ${gap} equal lines` });
  return out;
}

/** A text that is a unified diff, as lines; null where it is not. */
export function patch(text: string): DiffLine[] | null {
  if (!/^(diff --git |--- |\*\*\* Begin Patch|@@ )/m.test(text.slice(0, 4000)) || !/^[+-]/m.test(text)) return null;
  return text.split('\n').map((t) => ({
    text: t,
    cls: /^(\+\+\+|---|@@|diff |index |\*\*\*)/.test(t) ? 'h' : t[0] === '+' ? 'a' : t[0] === '-' ? 'd' : '',
  }));
}
