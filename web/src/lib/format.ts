// Numbers and times as people read them.
const thin = '\u202f';

/** Thousands are separated by a narrow space: 28 975. */
export function num(n: number | null | undefined): string {
  if (n == null || !Number.isFinite(n)) return '–';
  const s = Math.round(n).toString();
  return s.replace(/\B(?=(\d{3})+(?!\d))/g, thin);
}

/** A short form: 943, 10.8k, 1.2M. */
export function short(n: number | null | undefined): string {
  if (n == null || !Number.isFinite(n)) return '–';
  if (n < 10_000) return num(n);
  if (n < 999_950) return `${(n / 1000).toFixed(1)}k`;
  return `${(n / 1_000_000).toFixed(1)}M`;
}

export function bytes(n: number | null | undefined): string {
  if (n == null) return '–';
  if (n < 1024) return `${n} B`;
  if (n < 1024 * 1024) return `${(n / 1024).toFixed(1)} KiB`;
  if (n < 1024 ** 3) return `${(n / 1024 ** 2).toFixed(1)} MiB`;
  return `${(n / 1024 ** 3).toFixed(1)} GiB`;
}

export function percent(part: number, whole: number): string {
  if (!whole) return '–';
  const p = (100 * part) / whole;
  return `${p >= 99.95 || p === 0 ? p.toFixed(0) : p.toFixed(1)}%`;
}

export function ms(n: number | null | undefined): string {
  if (n == null) return '–';
  if (n < 1000) return `${n < 10 ? Math.round(n * 10) / 10 : Math.round(n)} ms`;
  if (n < 60_000) return `${(n / 1000).toFixed(1)} s`;
  return `${Math.floor(n / 60_000)} min ${Math.round((n % 60_000) / 1000)} s`;
}

export function ago(iso: string | undefined, now: number): string {
  if (!iso) return '';
  const s = Math.max(0, (now - Date.parse(iso)) / 1000);
  if (!Number.isFinite(s)) return '';
  if (s < 5) return 'now';
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h`;
  if (s < 86_400 * 60) return `${Math.floor(s / 86_400)} d`;
  const d = new Date(iso);
  return `${d.getFullYear()}-${String(d.getMonth() + 1).padStart(2, '0')}-${String(d.getDate()).padStart(2, '0')}`;
}

export function exact(iso: string | undefined): string {
  return iso ? iso.replace('T', ' ').replace(/(\.\d{3})\d*/, '$1').replace('Z', ' UTC') : '';
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${num(n)} ${n === 1 ? one : many}`;
}

/** The first line with words, for rows of lists. */
export function firstLine(text: string, max = 200): string {
  const s = text.slice(0, 4 * max).replace(/\u001b\[[0-9;:]*m/g, '').replace(/\s+/g, ' ').trim();
  return s.length > max ? `${s.slice(0, max)}…` : s;
}

/** A text without the marks of Markdown, for a row that has room for words only. */
export function unmarked(text: string): string {
  return text.replace(/^\s*(?:#{1,6}|[-*+>])\s+/gm, '').replace(/\*\*|__|`+|^\|?[-:| ]{3,}\|?$/gm, '').replace(/\s*\|\s*/g, ' · ');
}

/** Estimates tokens where the server gives none: as the server's fallback does, a quarter of the characters. */
export function estimate(chars: number): number {
  return Math.ceil(chars / 4);
}

/** An amount of money with as many digits as say something: $12.40, $0.0312, $0.000045. */
export function money(cost: { nano: number; currency: string } | null | undefined): string {
  if (!cost?.currency) return '';
  const n = cost.nano / 1e9;
  const digits = n === 0 || n >= 1 ? 2 : Math.min(9, 2 - Math.floor(Math.log10(n)));
  const text = n.toFixed(digits);
  return cost.currency === 'USD' ? `$${text}` : `${text} ${cost.currency}`;
}
