// The figures of the process, in the text form of Prometheus.
export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

export function samples(text: string): Sample[] {
  const out: Sample[] = [];
  for (const line of text.split('\n')) {
    if (!line || line[0] === '#') continue;
    const m = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!m) continue;
    const labels: Record<string, string> = {};
    for (const l of (m[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[l[1]] = l[2].replace(/\\(.)/g, '$1');
    out.push({ name: m[1], labels, value: Number(m[3]) });
  }
  return out;
}

export interface Histogram {
  label: string;
  count: number;
  quantile(q: number): number;
}

/** The histograms of one name, by the value of a label. */
export function histograms(all: Sample[], name: string, by: string): Histogram[] {
  const groups = new Map<string, { le: number; n: number }[]>();
  for (const s of all) {
    if (s.name !== `${name}_bucket`) continue;
    const key = s.labels[by] ?? '';
    const le = s.labels.le === '+Inf' ? Infinity : Number(s.labels.le);
    const list = groups.get(key) ?? [];
    const same = list.find((b) => b.le === le);
    if (same) same.n += s.value;
    else list.push({ le, n: s.value });
    groups.set(key, list);
  }
  return [...groups].map(([label, buckets]) => {
    buckets.sort((a, b) => a.le - b.le);
    const count = buckets[buckets.length - 1]?.n ?? 0;
    return {
      label,
      count,
      quantile(q: number) {
        const want = q * count;
        let below = 0;
        let n = 0;
        for (const b of buckets) {
          if (b.n >= want) return b.le === Infinity ? below : below + ((b.le - below) * (want - n)) / Math.max(1e-9, b.n - n);
          below = b.le === Infinity ? below : b.le;
          n = b.n;
        }
        return below;
      },
    };
  });
}
