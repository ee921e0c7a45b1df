// The heights of a list's rows as a Fenwick tree: where a row begins, and which row is at a place, in logarithmic time.
export class Heights {
  #tree: Float64Array;
  #own: Float64Array;
  n: number;

  constructor(n: number, each: number) {
    this.n = n;
    const size = Math.max(64, 2 ** Math.ceil(Math.log2(n + 1)) * 2);
    this.#tree = new Float64Array(size + 1);
    this.#own = new Float64Array(size + 1);
    for (let i = 1; i <= n; i++) this.#own[i] = each;
    this.#build();
  }

  #build() {
    this.#tree.fill(0);
    for (let i = 1; i < this.#tree.length; i++) {
      this.#tree[i] += this.#own[i];
      const up = i + (i & -i);
      if (up < this.#tree.length) this.#tree[up] += this.#tree[i];
    }
  }

  /** Makes the list n rows long; new rows have the given height. */
  grow(n: number, each: number) {
    if (n >= this.#own.length) {
      const own = new Float64Array(2 ** Math.ceil(Math.log2(n + 1)) * 2 + 1);
      own.set(this.#own);
      this.#own = own;
      this.#tree = new Float64Array(own.length);
      for (let i = this.n + 1; i <= n; i++) own[i] = each;
      this.n = n;
      this.#build();
      return;
    }
    for (let i = this.n + 1; i <= n; i++) this.#add(i, each);
    this.n = Math.max(this.n, n);
  }

  #add(i: number, d: number) {
    this.#own[i] += d;
    for (; i < this.#tree.length; i += i & -i) this.#tree[i] += d;
  }

  /** Sets row i (from 0); says whether that changed anything. */
  set(i: number, h: number): boolean {
    const d = h - this.#own[i + 1];
    if (Math.abs(d) < 0.5) return false;
    this.#add(i + 1, d);
    return true;
  }

  get(i: number): number {
    return this.#own[i + 1];
  }

  /** Where row i begins. */
  top(i: number): number {
    let s = 0;
    for (; i > 0; i -= i & -i) s += this.#tree[i];
    return s;
  }

  get total(): number {
    return this.top(this.n);
  }

  /** The row at y. */
  at(y: number): number {
    let i = 0;
    let step = 1;
    while (step * 2 < this.#tree.length) step *= 2;
    for (; step > 0; step >>= 1) {
      const next = i + step;
      if (next < this.#tree.length && next <= this.n && this.#tree[next] <= y) {
        i = next;
        y -= this.#tree[next];
      }
    }
    return Math.min(i, Math.max(0, this.n - 1));
  }
}
