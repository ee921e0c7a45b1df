// What all pages share: the clock for relative times, the session, the state of the connection, short notices.
import { del, get, onLocked, post } from './api';

class App {
  now = $state(Date.now());
  notice = $state('');
  /** What the notice offers to do, such as taking back what it says. */
  offer: { label: string; run: () => void } | null = $state(null);
  locked = $state(false);
  connected = $state(true);
  keysShown = $state(false);
  models: any[] = $state([]);
  agents: any[] = $state([]);
  session: any = $state(null);
  #noticeTimer = 0;

  constructor() {
    setInterval(() => (this.now = Date.now()), 5000);
    onLocked(() => (this.locked = true));
  }

  say(text: string, offer: { label: string; run: () => void } | null = null) {
    this.notice = text;
    this.offer = offer;
    clearTimeout(this.#noticeTimer);
    this.#noticeTimer = setTimeout(() => (this.notice = ''), offer ? 30_000 : 2200); // an offer takes longer to read, to decide on, and to reach by keyboard
  }

  async begin() {
    try {
      this.session = await get('/api/session');
      if (this.session.keys && !this.session.authenticated) {
        this.locked = true;
        return;
      }
    } catch {
      // A server without sessions needs no key, or says so with 401 on the first call.
    }
    await this.load();
  }

  async load() {
    try {
      const [models, agents] = await Promise.all([get('/api/models'), get('/api/agents')]);
      this.models = models.data;
      this.agents = agents.data;
    } catch {
      // The page that needs them says what is wrong.
    }
  }

  async unlock(key: string) {
    await post('/api/session', { key });
    location.reload();
  }

  /** Ends the session. The page is loaded again, so that nothing of the project stays in it. */
  async logOut() {
    try {
      await del('/api/session');
      location.reload();
    } catch (err) {
      this.say((err as Error).message);
    }
  }

  get theme(): string {
    return document.documentElement.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  }

  toggleTheme() {
    const theme = this.theme === 'dark' ? 'light' : 'dark';
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem('continuo.theme', theme);
    } catch {
      // Not kept.
    }
  }

  async copy(text: string, what = 'Copied') {
    try {
      await navigator.clipboard.writeText(text);
      this.say(what);
    } catch {
      this.say('The browser does not allow copying here');
    }
  }
}

export const app = new App();
