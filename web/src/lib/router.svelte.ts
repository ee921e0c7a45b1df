// Addresses are real paths, so that a page can be shared. Only the page's own links are taken over.
class Router {
  path = $state(location.pathname);
  search = $state(location.search);
  hash = $state(location.hash);

  constructor() {
    addEventListener('popstate', () => this.read());
    document.addEventListener('click', (ev) => {
      const a = (ev.target as Element).closest?.('a');
      if (!a || ev.defaultPrevented || ev.button !== 0 || ev.metaKey || ev.ctrlKey || ev.shiftKey || ev.altKey) return;
      if (a.target || a.hasAttribute('download') || a.origin !== location.origin) return;
      if (/^\/(api|openapi\.json|metrics|healthz|readyz)\b/.test(a.pathname)) return;
      const href = a.getAttribute('href') ?? '';
      if (href.startsWith('#')) return;
      ev.preventDefault();
      this.go(a.pathname + a.search + a.hash);
    });
  }

  read() {
    this.path = location.pathname;
    this.search = location.search;
    this.hash = location.hash;
  }

  go(to: string, replace = false) {
    const url = new URL(to, location.origin);
    const samePage = url.pathname === location.pathname;
    if (replace) history.replaceState(null, '', url);
    else history.pushState(null, '', url);
    this.read();
    if (!samePage) {
      scrollTo(0, 0);
      document.getElementById('main')?.focus({ preventScroll: true });
    }
  }

  get segments(): string[] {
    return this.path.split('/').filter(Boolean).map((s) => {
      try {
        return decodeURIComponent(s);
      } catch {
        return s; // no name of anything, which its page finds out
      }
    });
  }

  param(name: string): string {
    return new URLSearchParams(this.search).get(name) ?? '';
  }

  /** Changes parameters of this address without adding to the history. */
  set(changes: Record<string, string>) {
    const q = new URLSearchParams(this.search);
    for (const [k, v] of Object.entries(changes)) v ? q.set(k, v) : q.delete(k);
    const s = q.toString();
    this.go(this.path + (s ? `?${s}` : '') + this.hash, true);
  }
}

export const router = new Router();
