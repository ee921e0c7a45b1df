/** The connection to a server: requests, errors, and streams that survive a broken connection. */

export interface Options {
  /** Where the server is. Default `http://127.0.0.1:8787`. */
  baseUrl?: string;
  /** An API key (`continuo keys create`). Default none. */
  key?: string;
  /** Headers of every request. */
  headers?: Record<string, string>;
  /** What sends requests. Default the global `fetch`. */
  fetch?: typeof fetch;
  /** How often in a row a broken stream is connected again. Default 5; 0: never. */
  reconnects?: number;
  /** The delay before the first of these, in milliseconds; it doubles each time. Default 250. */
  reconnectDelay?: number;
}

export interface CallOptions {
  /** Ends the request. The turn that it began continues: `cancelTurn` stops it. */
  signal?: AbortSignal;
}

/** An event of a stream. Events with an `id` can be continued after. */
export interface ServerEvent<Name extends string, Data> {
  event: Name;
  data: Data;
  id?: string;
}

/** An answer of the server that is an error. */
export class ContinuoError extends Error {
  override name = "ContinuoError";
  constructor(
    /** The HTTP status. */
    readonly status: number,
    /** The cause, for programs, such as `not_found`. */
    readonly code: string,
    message: string,
    /** The whole answer; of a turn that failed it has the text so far. */
    readonly body: unknown,
  ) {
    super(message);
  }
}

export interface Parts {
  query?: Record<string, unknown>;
  headers?: Record<string, string | number | undefined>;
  body?: unknown;
  signal?: AbortSignal;
}

/** The events after which a stream has nothing more. */
const last = new Set(["done", "error", "end"]);

type AnyEvent = ServerEvent<string, any>;

export class Transport {
  readonly #options: Options;
  readonly #baseUrl: string;

  constructor(options: Options = {}) {
    this.#options = options;
    this.#baseUrl = (options.baseUrl ?? "http://127.0.0.1:8787").replace(/\/+$/, "");
  }

  /** Sends a request and returns what its answer holds: JSON as a value, anything else as text. */
  protected async call(method: string, path: string, parts: Parts): Promise<any> {
    const response = await this.#send(method, path, parts, "application/json, text/plain;q=0.9, */*;q=0.8");
    if (response.status === 204) return undefined;
    return isJSON(response) ? response.json() : response.text();
  }

  /**
   * Sends a request whose answer is a stream, and yields its events until the last one. When the connection breaks, it
   * continues after the last event that it got, without gaps or duplicates.
   */
  protected async *stream(method: string, path: string, parts: Parts): AsyncGenerator<any> {
    const { reconnects = 5, reconnectDelay = 250 } = this.#options;
    let place: string | undefined = method === "GET" ? path : undefined;
    let [next, request]: [string, Parts] = [path, parts];
    let id: string | undefined;
    for (let failures = 0; ; failures++) {
      let cause: unknown = new Error("the connection ended before the stream did");
      try {
        const response = await this.#send(method, next, request, "text/event-stream");
        if (response.status === 204 || !response.body) return;
        for await (const event of events(response.body)) {
          failures = 0;
          id = event.id ?? id;
          place ??= follows(path, event);
          yield event;
          if (last.has(event.event)) return;
        }
      } catch (error) {
        if (parts.signal?.aborted) throw error;
        if (error instanceof ContinuoError && error.status < 500 && error.status !== 429) throw error;
        cause = error;
      }
      if (place === undefined || failures >= reconnects) throw cause;
      await pause(reconnectDelay * 2 ** failures, parts.signal);
      method = "GET";
      next = place;
      request = { query: place === path ? parts.query : undefined, signal: parts.signal };
      request.headers = id === undefined ? (place === path ? parts.headers : undefined) : { "Last-Event-ID": id };
    }
  }

  async #send(method: string, path: string, parts: Parts, accept: string): Promise<Response> {
    const headers: Record<string, string> = { Accept: accept, ...this.#options.headers };
    if (this.#options.key) headers["Authorization"] = `Bearer ${this.#options.key}`;
    for (const [name, value] of Object.entries(parts.headers ?? {})) {
      if (value !== undefined) headers[name] = String(value);
    }
    if (parts.body !== undefined) headers["Content-Type"] = "application/json";
    const response = await (this.#options.fetch ?? fetch)(this.#baseUrl + path + search(parts.query), {
      method,
      headers,
      body: parts.body === undefined ? undefined : JSON.stringify(parts.body),
      signal: parts.signal,
    });
    if (!response.ok) throw await failure(response);
    return response;
  }
}

/** Where the stream that a request began can be continued, as far as an event says it. */
function follows(path: string, { event, data }: AnyEvent): string | undefined {
  const part = encodeURIComponent;
  if (event === "turn" && (path === "/chat" || path.includes("/turns/"))) {
    return `/api/conversations/${part(data.conversation_id)}/turns/${part(data.turn_id)}/events`;
  }
  if (event === "status" && path === "/api/runs") return `/api/runs/${part(data.id)}/events`;
  if (event === "status" && data.crew) return `/api/crews/${part(data.crew)}/events?session_id=${part(data.session_id)}`;
  return undefined;
}

function search(query: Record<string, unknown> = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue;
    if (typeof value === "object") {
      for (const [member, text] of Object.entries(value)) parameters.append(name + member, String(text));
    } else {
      parameters.append(name, String(value));
    }
  }
  return parameters.size ? `?${parameters}` : "";
}

function isJSON(response: Response): boolean {
  return /^application\/([\w.-]+\+)?json\b/.test(response.headers.get("Content-Type") ?? "");
}

async function failure(response: Response): Promise<ContinuoError> {
  const text = await response.text();
  try {
    const body = JSON.parse(text);
    return new ContinuoError(response.status, body.error.code, body.error.message, body);
  } catch {
    return new ContinuoError(response.status, "", text || response.statusText, text);
  }
}

/** Reads server-sent events. */
async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<AnyEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let fields: { event: string; data: string[]; id?: string } = { event: "message", data: [] };
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const ended of lines) {
        const line = ended.endsWith("\r") ? ended.slice(0, -1) : ended;
        if (line === "") {
          if (fields.data.length) {
            const event: AnyEvent = { event: fields.event, data: JSON.parse(fields.data.join("\n")) };
            if (fields.id !== undefined) event.id = fields.id;
            yield event;
          }
          fields = { event: "message", data: [] };
          continue;
        }
        const colon = line.indexOf(":");
        const name = colon < 0 ? line : line.slice(0, colon);
        const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (name === "event") fields.event = text;
        if (name === "data") fields.data.push(text);
        if (name === "id") fields.id = text;
      }
    }
  } finally {
    await reader.cancel().catch(() => {}); // the consumer may have stopped early
  }
}

function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    if (signal?.aborted) return stop();
    signal?.addEventListener("abort", stop, { once: true });
  });
}
