// Where the steps of a workflow are drawn: columns by the longest way from the beginning, loops drawn below.
export interface Placed {
  id: string;
  x: number;
  y: number;
}
export interface Drawn {
  from: string;
  to: string;
  path: string;
  loop: boolean;
  label: { x: number; y: number };
  edge: any;
}

export const box = { w: 132, h: 48, gapX: 60, gapY: 22 };

export function layout(nodes: { id: string }[], edges: any[]): { nodes: Map<string, Placed>; edges: Drawn[]; width: number; height: number } {
  const index = new Map(nodes.map((n, i) => [n.id, i]));
  const isLoop = (e: any) => e.max != null && (index.get(e.to) ?? 0) <= (index.get(e.from) ?? 0);
  const forward = edges.filter((e) => !isLoop(e) && (index.get(e.to) ?? 0) > (index.get(e.from) ?? 0));
  const column = new Map(nodes.map((n) => [n.id, 0]));
  for (let round = 0; round < nodes.length; round++) {
    for (const e of forward) column.set(e.to, Math.max(column.get(e.to)!, column.get(e.from)! + 1));
  }
  const columns: string[][] = [];
  for (const n of nodes) (columns[column.get(n.id)!] ??= []).push(n.id);
  const most = Math.max(1, ...columns.map((c) => c?.length ?? 0));
  const loops = edges.filter((e) => !forward.includes(e));
  const height = most * box.h + (most - 1) * box.gapY;
  const placed = new Map<string, Placed>();
  columns.forEach((c, x) => {
    const h = c.length * box.h + (c.length - 1) * box.gapY;
    c.forEach((id, i) => placed.set(id, { id, x: x * (box.w + box.gapX), y: (height - h) / 2 + i * (box.h + box.gapY) }));
  });
  const drawn: Drawn[] = [];
  forward.forEach((e) => {
    const a = placed.get(e.from)!;
    const b = placed.get(e.to)!;
    const [x1, y1, x2, y2] = [a.x + box.w, a.y + box.h / 2, b.x - 7, b.y + box.h / 2];
    const mid = Math.min(40, (x2 - x1) / 2);
    drawn.push({ from: e.from, to: e.to, edge: e, loop: false, label: { x: (x1 + x2) / 2, y: (y1 + y2) / 2 - 6 }, path: `M${x1} ${y1}C${x1 + mid} ${y1} ${x2 - mid} ${y2} ${x2} ${y2}` });
  });
  loops.forEach((e, i) => {
    const a = placed.get(e.from)!;
    const b = placed.get(e.to)!;
    const deep = height + 40 + i * 44;
    const [x1, x2] = [a.x + box.w / 2, b.x + box.w / 2];
    // The lowest point of the curve, which has both of its handles at one depth.
    const low = 0.25 * Math.max(a.y, b.y) + 0.25 * box.h + 0.75 * (deep + 10);
    drawn.push({ from: e.from, to: e.to, edge: e, loop: true, label: { x: (x1 + x2) / 2, y: low - 8 }, path: `M${x1} ${a.y + box.h}C${x1} ${deep + 10} ${x2} ${deep + 10} ${x2} ${b.y + box.h + 7}` });
  });
  return { nodes: placed, edges: drawn, width: columns.length * (box.w + box.gapX) - box.gapX, height: height + (loops.length ? 22 + loops.length * 40 : 0) };
}
