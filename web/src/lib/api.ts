// Every call of the page. Only the public API is used: what is shown here can be had by a program.
export class ApiError extends Error {
  constructor(
    public status: number,
    public code: string,
    message: string,
    public detail: any = {},
  ) {
    super(message);
  }
}

type Listener = () => void;
const lockListeners = new Set<Listener>();

/** Called when an answer says that a key is needed. */
export function onLocked(f: Listener): () => void {
  lockListeners.add(f);
  return () => lockListeners.delete(f);
}

export function query(params: Record<string, string | number | boolean | null | undefined>): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v !== null && v !== undefined && v !== '' && v !== false) q.set(k, String(v));
  const s = q.toString();
  return s ? `?${s}` : '';
}

async function failed(res: Response): Promise<ApiError> {
  let detail: any = {};
  try {
    detail = (await res.json()).error ?? {};
  } catch {
    // Not JSON: a proxy answered.
  }
  if (res.status === 401) lockListeners.forEach((f) => f());
  return new ApiError(res.status, detail.code ?? `http_${res.status}`, detail.message ?? `The server answered ${res.status}.`, detail);
}

async function send(method: string, path: string, body?: unknown, signal?: AbortSignal, headers: Record<string, string> = {}): Promise<Response> {
  const init: RequestInit = { method, signal, headers: { Accept: 'application/json', ...headers }, credentials: 'same-origin' };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    (init.headers as Record<string, string>)['Content-Type'] = 'application/json';
  }
  let res: Response;
  try {
    res = await fetch(path, init);
  } catch (err) {
    if ((err as Error).name === 'AbortError') throw err;
    throw new ApiError(0, 'unreachable', 'The server cannot be reached.');
  }
  if (!res.ok) throw await failed(res);
  return res;
}

export async function get<T = any>(path: string, signal?: AbortSignal): Promise<T> {
  return (await send('GET', path, undefined, signal)).json();
}

export async function getText(path: string, signal?: AbortSignal): Promise<string> {
  return (await send('GET', path, undefined, signal, { Accept: '*/*' })).text();
}

export async function post<T = any>(path: string, body: unknown = {}, headers: Record<string, string> = {}): Promise<T> {
  const res = await send('POST', path, body, undefined, headers);
  const text = await res.text();
  return text ? JSON.parse(text) : (undefined as T);
}

export async function patch<T = any>(path: string, body: unknown): Promise<T> {
  return (await send('PATCH', path, body)).json();
}

export async function del(path: string): Promise<void> {
  await send('DELETE', path);
}

export interface ServerEvent {
  id: string;
  event: string;
  data: any;
}

/** Sends a request whose answer is a stream of events, and calls on for each, until on returns false or it ends. */
export async function postStream(path: string, body: unknown, on: (e: ServerEvent) => boolean | void): Promise<void> {
  const stop = new AbortController();
  const res = await send('POST', path, body, stop.signal, { Accept: 'text/event-stream' });
  const reader = res.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
      const e = parseEvent(rest.slice(0, end));
      rest = rest.slice(end + 2);
      if (e && on(e) === false) {
        stop.abort();
        return;
      }
    }
  }
}

function parseEvent(block: string): ServerEvent | null {
  const e: ServerEvent = { id: '', event: 'message', data: null };
  const data: string[] = [];
  for (const line of block.split('\n')) {
    if (line.startsWith('id:')) e.id = line.slice(3).trim();
    else if (line.startsWith('event:')) e.event = line.slice(6).trim();
    else if (line.startsWith('data:')) data.push(line.slice(5).trimStart());
  }
  if (!data.length) return null;
  e.data = JSON.parse(data.join('\n'));
  return e;
}

export interface Following {
  close(): void;
}

/** How long a stream may be silent: the server says something every 15 seconds. */
const silence = 40_000;
/** How long a page may be out of sight before its streams are closed: a browser opens six connections to a server. */
const hiddenFor = 5_000;

/**
 * Follows a stream of events, and comes back by itself with the last id after the connection was lost.
 * A stream that the server has ended (an EventSource gets 204) is not asked for again. While nobody looks at the page, the
 * stream is closed; it goes on from the last id when somebody does.
 */
export function follow(
  path: () => string,
  events: Record<string, (data: any, id: string) => void>,
  state: (connected: boolean, status: number) => void = () => {},
): Following {
  let closed = false;
  let wait = 250;
  let last = '';
  let stop = new AbortController();
  let wake = () => {};
  const asleep = (time?: number) =>
    new Promise<void>((r) => {
      wake = r;
      if (time !== undefined) setTimeout(r, time);
    });
  /** Reads one connection to its end. Returns false where it must not be opened again. */
  const connect = async (): Promise<boolean> => {
    const headers: Record<string, string> = { Accept: 'text/event-stream' };
    if (last) headers['Last-Event-ID'] = last;
    const own = stop;
    let timer = setTimeout(() => own.abort(), silence);
    try {
      const res = await fetch(path(), { headers, signal: own.signal, credentials: 'same-origin' });
      if (res.status === 204) {
        state(true, 204);
        return false;
      }
      if (!res.ok && res.status < 500 && res.status !== 429) {
        if (res.status === 401) lockListeners.forEach((f) => f());
        state(false, res.status);
        return false;
      }
      if (!res.ok) throw new Error(String(res.status));
      state(true, 200);
      wait = 250;
      const reader = res.body!.pipeThrough(new TextDecoderStream()).getReader();
      let rest = '';
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return true;
        clearTimeout(timer);
        timer = setTimeout(() => own.abort(), silence);
        rest += value;
        for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
          const e = parseEvent(rest.slice(0, end));
          rest = rest.slice(end + 2);
          if (!e) continue;
          if (e.id) last = e.id;
          events[e.event]?.(e.data, e.id);
          if (closed) return false;
        }
      }
    } finally {
      clearTimeout(timer);
    }
  };
  let hidden = 0;
  let unseen = false;
  const run = async () => {
    while (!closed) {
      if (unseen) {
        await asleep();
        continue;
      }
      try {
        if (!(await connect())) return;
      } catch {
        if (closed) return;
        if (!unseen) state(false, 0);
      }
      if (unseen) continue;
      await asleep(wait);
      wait = Math.min(10_000, wait * 2);
    }
  };
  const again = () => {
    stop.abort();
    stop = new AbortController();
    wait = 250;
    wake();
  };
  const looked = () => {
    clearTimeout(hidden);
    if (document.visibilityState === 'hidden') {
      hidden = setTimeout(() => {
        unseen = true;
        stop.abort();
      }, hiddenFor) as unknown as number;
    } else if (unseen) {
      unseen = false;
      again();
    }
  };
  document.addEventListener('visibilitychange', looked);
  addEventListener('offline', again);
  addEventListener('online', again);
  void run();
  return {
    close() {
      closed = true;
      clearTimeout(hidden);
      document.removeEventListener('visibilitychange', looked);
      removeEventListener('offline', again);
      removeEventListener('online', again);
      stop.abort();
      wake();
    },
  };
}

export const conv = (id: string) => `/api/conversations/${encodeURIComponent(id)}`;
