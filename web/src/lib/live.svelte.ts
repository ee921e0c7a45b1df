// What changes in the project's list, as the server says it: GET /api/events. The stream is opened again by itself; what
// changed while it was closed is asked for by those who show rows, so that nothing is missed.
import { follow, type Following } from './api';

/** `conversation` has a row that changed, `removed` the id of one that is gone; `again` says that rows may have been missed. */
type Handler = (event: 'conversation' | 'removed' | 'again', data: any) => void;

const known = 500;

class Live {
  state = $state<'off' | 'live' | 'lost'>('off');
  /** Resolves when the stream is open, or cannot be opened: rows that are read from then on are followed by their changes. */
  opened: Promise<void>;
  #handlers = new Set<Handler>();
  #newest = new Map<string, any>();
  #deleted = new Set<string>();
  #feed: Following | null = null;
  #wasOpen = false;
  #resolve!: () => void;

  constructor() {
    this.opened = new Promise((r) => (this.#resolve = r));
  }

  get words(): string {
    return this.state === 'live' ? 'Live' : this.state === 'lost' ? 'Connection lost' : 'Not live';
  }

  start() {
    // Elsewhere a stream that does not open yet must not keep the list from being read. When it opens after that, rows may
    // have been missed.
    setTimeout(() => {
      this.#wasOpen = true;
      this.#resolve();
    }, 1500);
    this.#feed ??= follow(
      () => '/api/events?kind=all',
      {
        conversation: (row) => {
          this.#newest.delete(row.id);
          this.#newest.set(row.id, row);
          if (this.#newest.size > known) this.#newest.delete(this.#newest.keys().next().value!);
          this.#emit('conversation', row);
        },
        removed: (gone) => {
          this.#newest.delete(gone.id);
          if (!gone.archived) this.#deleted.add(gone.id);
          if (this.#deleted.size > known) this.#deleted.delete(this.#deleted.keys().next().value!);
          this.#emit('removed', gone);
        },
      },
      (connected, status) => {
        if (connected) {
          this.state = 'live';
          if (this.#wasOpen) this.#emit('again', null);
          this.#wasOpen = true;
        } else this.state = status === 401 || status === 403 ? 'off' : 'lost';
        this.#resolve();
      },
    );
  }

  /** A row of the list, or what the stream has said of it since. */
  newer<T extends { id: string; updated_at?: string }>(row: T): T {
    const said = this.#newest.get(row.id);
    return said && said.updated_at >= (row.updated_at ?? '') ? said : row;
  }

  /** Whether the stream has said that a conversation was deleted: an answer that was read before still has it. */
  deleted(id: string): boolean {
    return this.#deleted.has(id);
  }

  #emit(event: 'conversation' | 'removed' | 'again', data: any) {
    this.#handlers.forEach((h) => h(event, data));
  }

  on(h: Handler): () => void {
    this.#handlers.add(h);
    return () => this.#handlers.delete(h);
  }
}

export const live = new Live();
