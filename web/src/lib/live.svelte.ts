// The feed of what changes in the project. Where a server has no such feed, a list asks again when it is looked at.
import { follow, type Following } from './api';

type Handler = (event: string, data: any) => void;

class Live {
  state = $state<'off' | 'live' | 'lost'>('off');
  #handlers = new Set<Handler>();
  #feed: Following | null = null;

  get words(): string {
    return this.state === 'live' ? 'Live' : this.state === 'lost' ? 'Connection lost' : 'Not live';
  }

  start() {
    if (this.#feed) return;
    const pass = (event: string) => (data: any) => this.#handlers.forEach((h) => h(event, data));
    this.#feed = follow(
      () => '/api/events',
      { conversation: pass('conversation'), deleted: pass('deleted'), reset: pass('reset') },
      (connected, status) => {
        const was = this.state;
        this.state = connected ? 'live' : status ? 'off' : 'lost';
        if (was === 'lost' && connected) this.#handlers.forEach((h) => h('again', null));
      },
    );
  }

  on(h: Handler): () => void {
    this.#handlers.add(h);
    return () => this.#handlers.delete(h);
  }
}

export const live = new Live();
