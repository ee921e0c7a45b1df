// One conversation's log as far as it was read, and the turn that is in progress.
import { ApiError, conv, follow, get, type Following } from './api';

export interface Entry {
  id: string;
  seq: number;
  role: string;
  [k: string]: any;
}

const chunk = 100;

/** Does one reading at a time. One that has begun may lack the newest: where it is asked for meanwhile, another one follows it. */
function oneByOne(read: () => Promise<void>): () => Promise<void> {
  let now: Promise<void> | null = null;
  let next: Promise<void> | null = null;
  return function again(): Promise<void> {
    if (!now) return (now = read().finally(() => (now = null)));
    const after = () => {
      next = null;
      return again();
    };
    return (next ??= now.then(after, after));
  };
}

export class LiveTurn {
  id = '';
  state = $state('running');
  /** What the model generated, by request of the turn; those that the log already has are not shown again. */
  parts: { text: string; reasoning: string; calls: any[] }[] = $state([]);
  waiting: any[] = $state([]);
  error: any = $state(null);

  constructor(id: string) {
    this.id = id;
  }
}

export class Timeline {
  id: string;
  /** Grows with each change of what is known of the log. */
  version = $state(0);
  last = $state(0);
  info: any = $state(null);
  error: any = $state(null);
  turn: LiveTurn | null = $state(null);
  newest: any = $state(null);
  lost = $state(false);
  entries = new Map<number, Entry>();
  /** The results of calls are shown with the calls. */
  owner = new Map<number, number>();
  results = new Map<number, Map<string, Entry>>();
  #chunks = new Map<number, Promise<void>>();
  #feed: Following | null = null;
  #turnFeed: Following | null = null;
  #closed = false;
  #pending: (() => void)[] = [];

  constructor(id: string) {
    this.id = id;
  }

  /** An entry that was read; where it is used, it is looked for again when more was read. */
  entry(seq: number): Entry | undefined {
    void this.version;
    return this.entries.get(seq);
  }

  async begin() {
    try {
      this.info = await get(conv(this.id));
      this.last = this.info.last_seq;
      this.error = null;
    } catch (err) {
      this.error = err;
      return;
    }
    await this.refreshTurn();
    this.#listen();
  }

  #listen() {
    if (this.#closed) return; // while it was read
    this.#feed?.close();
    const last = this.last;
    this.#feed = follow(
      () => `${conv(this.id)}/events?after=${last}`,
      {
        entry: (e) => this.add([e], true),
        turn: () => void this.refreshTurn(),
        conversation: (c) => (this.info = { ...this.info, ...c }),
        revised: () => this.#again(),
      },
      (connected) => {
        if (this.lost && connected) void this.catchUp();
        this.lost = !connected;
      },
    );
  }

  close() {
    this.#closed = true;
    this.#feed?.close();
    this.#turnFeed?.close();
  }

  /** Stored entries changed, by a redaction: what was read is read again when it is shown. */
  #again() {
    this.entries.clear();
    this.owner.clear();
    this.results.clear();
    this.#chunks.clear();
    this.version++;
  }

  /** Reads the entries from one seq to another, in pieces that are asked for once. */
  async need(from: number, to: number) {
    const jobs: Promise<void>[] = [];
    for (let c = Math.floor((Math.max(1, from) - 1) / chunk); c * chunk < Math.min(to, this.last); c++) {
      let job = this.#chunks.get(c);
      if (!job) {
        job = this.#read(c * chunk + 1, Math.min((c + 1) * chunk, this.last)).catch(() => void this.#chunks.delete(c));
        this.#chunks.set(c, job);
      }
      jobs.push(job);
    }
    await Promise.all(jobs);
  }

  async #read(from: number, to: number) {
    // An answer that is too large for one page has a cursor.
    while (from <= to && !this.#closed) {
      const page = await get(`${conv(this.id)}/entries?from=${from}&limit=${to - from + 1}`);
      if (!page.data.length) return;
      this.add(page.data);
      from = page.data[page.data.length - 1].seq + 1;
    }
  }

  add(list: Entry[], live = false) {
    for (const e of list) {
      this.entries.set(e.seq, e);
      if (e.seq > this.last) this.last = e.seq;
    }
    this.#pair(list);
    this.version++;
    if (live && this.info) this.info.last_seq = this.last;
  }

  /** Finds the call of each result among what was read. A call's id may be used again later: the nearest one before counts. */
  #pair(list: Entry[]) {
    for (const e of list) {
      if (e.role === 'tool') this.#attach(e);
      else if (e.tool_calls?.length) {
        for (let s = e.seq + 1; s <= e.seq + 200 && this.entries.has(s); s++) {
          const r = this.entries.get(s)!;
          if (r.role === 'tool') this.#attach(r);
        }
      }
    }
  }

  #attach(r: Entry) {
    if (this.owner.has(r.seq)) return;
    for (let s = r.seq - 1; s >= Math.max(1, r.seq - 400); s--) {
      const e = this.entries.get(s);
      if (!e) return;
      if (e.tool_calls?.some((c: any) => c.id === r.tool_call_id)) {
        const m = this.results.get(s) ?? new Map();
        if (m.has(r.tool_call_id)) return;
        m.set(r.tool_call_id, r);
        this.results.set(s, m);
        this.owner.set(r.seq, s);
        return;
      }
    }
  }

  /** Reads what was appended until now. */
  catchUp = oneByOne(async () => {
    try {
      for (;;) {
        const page = await get(`${conv(this.id)}/entries?from=${this.last + 1}&limit=200`);
        if (page.data.length) this.add(page.data, true);
        if (!page.has_more || !page.data.length) return;
      }
    } catch {
      // The next event asks again.
    }
  });

  /** Reads the newest turn, and follows it while it runs: its events say which calls wait. */
  refreshTurn = oneByOne(async () => {
    try {
      const page = await get(`${conv(this.id)}/turns?limit=1`);
      this.newest = page.data[0] ?? null;
      if (this.newest?.state === 'running') {
        if (this.turn?.id !== this.newest.id) this.followTurn(this.newest.id);
      } else if (this.newest?.id === this.turn?.id) this.turn = null;
    } catch (err) {
      if (!(err instanceof ApiError)) throw err;
    }
  });

  /** How many answers of a turn the log has, of what was read. */
  answered(turn: string): number {
    void this.version;
    let n = 0;
    for (let s = this.last; s >= 1; s--) {
      const e = this.entries.get(s);
      if (!e) break;
      if (e.turn_id === turn && e.role === 'assistant') n++;
      else if (e.turn_id && e.turn_id !== turn) break;
    }
    return n;
  }

  followTurn(id: string) {
    if (this.#closed) return;
    this.#turnFeed?.close();
    const turn = new LiveTurn(id);
    this.turn = turn;
    // Deltas are put together and shown once per frame, however many arrive.
    let text = '';
    let reasoning = '';
    const flush = () => {
      if (!text && !reasoning) return;
      const p = turn.parts[turn.parts.length - 1] ?? (turn.parts.push({ text: '', reasoning: '', calls: [] }), turn.parts[turn.parts.length - 1]);
      p.text += text;
      p.reasoning += reasoning;
      text = reasoning = '';
    };
    let frame = 0;
    const later = () => (frame ||= requestAnimationFrame(() => ((frame = 0), flush())));
    const part = () => {
      flush();
      if (!turn.parts.length) turn.parts.push({ text: '', reasoning: '', calls: [] });
      return turn.parts[turn.parts.length - 1];
    };
    const over = async () => {
      flush();
      await this.catchUp();
      if (this.turn === turn) this.turn = null;
      await this.refreshTurn();
      this.#pending.splice(0).forEach((f) => f());
    };
    this.#turnFeed = follow(() => `${conv(this.id)}/turns/${id}/events`, {
      turn: () => void this.catchUp(),
      context: () => {
        flush();
        turn.parts.push({ text: '', reasoning: '', calls: [] });
        void this.catchUp();
      },
      delta: (d) => ((text += d.text), later()),
      reasoning: (d) => ((reasoning += d.text), later()),
      fallback: () => {
        flush();
        turn.parts.pop();
      },
      tool_call_delta: (d) => {
        const p = part();
        const c = (p.calls[d.index] ??= { id: d.id, name: d.name, arguments: '' });
        c.arguments += d.arguments ?? '';
      },
      tool_call: () => void this.catchUp(),
      approval: (d) => {
        if (!turn.waiting.some((w) => w.id === d.id)) turn.waiting = [...turn.waiting, d];
        void this.catchUp();
      },
      decision: (d) => (turn.waiting = turn.waiting.filter((w) => w.id !== d.tool_call_id)),
      tool_result: () => void this.catchUp(),
      done: () => void over(),
      error: (d) => ((turn.error = d.error), void over()),
    });
  }

  /** Resolves when the turn in progress has ended. */
  ended(): Promise<void> {
    return this.turn ? new Promise((r) => this.#pending.push(r)) : Promise.resolve();
  }
}
