// What changes in the project's list. The server has no feed of lists: the head of the list is asked for again while
// somebody looks at the page, which also says whether the server can be reached.
import { get } from './api';

type Handler = (event: 'conversation' | 'again', data: any) => void;

const pause = 2000;

class Live {
  state = $state<'off' | 'live' | 'lost'>('off');
  #handlers = new Set<Handler>();
  #seen = new Map<string, string>();
  #newest = '';
  #begun = false;

  get words(): string {
    return this.state === 'live' ? 'Live' : this.state === 'lost' ? 'Connection lost' : 'Not live';
  }

  start() {
    if (this.#begun) return;
    this.#begun = true;
    const next = async () => {
      if (document.visibilityState === 'visible') await this.#look();
      setTimeout(next, pause);
    };
    void next();
    addEventListener('online', () => void this.#look());
    addEventListener('offline', () => (this.state = 'lost'));
  }

  async #look() {
    try {
      const page = await get('/api/conversations?limit=20&kind=all');
      const was = this.state;
      this.state = 'live';
      if (was === 'lost') this.#emit('again', null);
      const before = this.#newest;
      for (const row of page.data) {
        if (before && this.#seen.get(row.id) !== row.updated_at && row.updated_at >= before) this.#emit('conversation', row);
        this.#seen.set(row.id, row.updated_at);
      }
      this.#newest = page.data[0]?.updated_at ?? before ?? '';
      this.#newest ||= new Date(0).toISOString();
    } catch (err) {
      const status = (err as { status?: number }).status;
      this.state = status === 401 || status === 403 ? 'off' : 'lost';
    }
  }

  #emit(event: 'conversation' | 'again', data: any) {
    this.#handlers.forEach((h) => h(event, data));
  }

  on(h: Handler): () => void {
    this.#handlers.add(h);
    return () => this.#handlers.delete(h);
  }
}

export const live = new Live();
