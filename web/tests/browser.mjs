// What the checks of the inspector share: a browser, and what counts as a failure on every page.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

export const base = process.env.INSPECTOR_URL;
/** The folder for pictures of the pages; '' where none are wanted. */
export const shots = process.env.INSPECTOR_SHOTS;
/** Whether checks are made that differ from others in colours and sizes only. */
export const all = !!shots || !!process.env.CONTINUO_LONG;
const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const only = new RegExp(process.env.INSPECTOR_ONLY || '.');

let passed = 0;
let failed = 0;

export async function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
}

/** Runs in every page: a link whose address lacks a value is an error at any moment, also before the page has read the value. */
function watchLinks() {
  const look = (a) => {
    const to = a.getAttribute('href') ?? '';
    if (/(^|[/=~?&])(undefined|null|NaN|\[object)/.test(to)) console.error(`a link whose address lacks a value: ${to}`);
  };
  new MutationObserver((changes) => {
    for (const c of changes) {
      if (c.type === 'attributes') look(c.target);
      for (const e of c.addedNodes) if (e.nodeType === Node.ELEMENT_NODE) for (const a of [e, ...e.querySelectorAll('a[href]')]) if (a.matches('a[href]')) look(a);
    }
  }).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ['href'] });
}

/** A person: a browser context of their own before one server, a page in it, and what counts as a failure there. */
export class Walker {
  problems = [];
  /** What a check expects of the server, such as a 404 that the page has to show. */
  expected = [];
  /** Origins besides the server's own that a check lets the browser ask. */
  allowed = [];

  static async begin(browser, { server = base, ...options } = {}) {
    const w = new Walker();
    w.base = server;
    w.browser = browser;
    w.context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'light', reducedMotion: 'reduce', ...options });
    w.context.setDefaultTimeout(Number(process.env.INSPECTOR_PATIENCE || 90_000)); // for busy machines; nothing is measured by it
    w.#watch();
    await w.context.addInitScript(watchLinks);
    w.page = await w.context.newPage();
    return w;
  }

  /** Console errors, failed and foreign requests, and dialogs of scripts are failures. */
  #watch() {
    const own = new URL(this.base).origin;
    const unexpected = (text) => !this.expected.some((e) => e.test(text));
    this.context.on('console', (m) => {
      const text = `${m.text()} ${m.location().url}`;
      if (m.type() === 'error' && unexpected(text)) this.problems.push(`console: ${text}`);
    });
    this.context.on('weberror', (e) => this.problems.push(`script: ${e.error().stack}`));
    this.context.on('dialog', (d) => {
      this.problems.push(`a script opened a dialog: ${d.message()}`);
      void d.dismiss();
    });
    this.context.on('request', (r) => {
      const url = new URL(r.url());
      if (url.origin !== own && !this.allowed.includes(url.origin) && !['data:', 'blob:', 'about:'].includes(url.protocol)) this.problems.push(`a request left the page's own server: ${r.url()}`);
    });
    this.context.on('requestfailed', (r) => {
      const why = r.failure()?.errorText ?? '';
      // Streams are closed when a page is left.
      if (why !== 'net::ERR_ABORTED' && unexpected(`${why} ${r.url()}`)) this.problems.push(`failed: ${r.url()}: ${why}`);
    });
  }

  /** A check; allow are failures that it provokes. INSPECTOR_ONLY is an expression for the names of those that are run. */
  async check(name, body, allow = []) {
    if (!only.test(name)) return;
    this.expected = allow;
    this.problems.length = 0;
    const at = Date.now();
    try {
      await body();
      if (this.problems.length) throw new Error('the page had problems');
      passed++;
      console.log(`ok ${name} (${Date.now() - at} ms)`);
    } catch (err) {
      failed++;
      const shown = await this.page.locator('body').innerText({ timeout: 5000 }).catch((e) => e.message);
      console.log(`FAILED ${name} at ${this.page.url()}: ${err.stack}\n  ${this.problems.join('\n  ')}\n  shown: ${shown.replace(/\s+/g, ' ').slice(0, 600)}`);
    }
  }

  async open(path, page = this.page) {
    await page.goto(this.base + path);
    await page.locator('h1').first().waitFor();
  }

  /** Goes to an address inside the page, as its links do: the program is not loaded again. */
  async go(path) {
    if (!this.page.url().startsWith(this.base)) return this.open(path);
    await this.page.evaluate(async (to) => {
      history.pushState(null, '', to);
      dispatchEvent(new PopStateEvent('popstate'));
      for (let i = 0; i < 2; i++) await new Promise((r) => requestAnimationFrame(r));
    }, path);
    await this.page.locator('h1').first().waitFor();
  }

  row(text) {
    return this.page.getByRole('article').filter({ hasText: text });
  }

  /** Says something to the model that streams. */
  async talk(text) {
    await this.page.getByLabel('Model', { exact: true }).selectOption('sonnet');
    await this.send(text);
  }

  /** Sends a message, and returns when its turn has begun. */
  async send(text) {
    const field = this.page.getByLabel('Message', { exact: true });
    await field.fill(text);
    await this.page.keyboard.press('Enter');
    await this.page.waitForFunction((f) => !f.value, await field.elementHandle());
  }

  /** The answer that is streamed. */
  get answer() {
    return this.page.getByRole('article', { name: 'The answer in progress' });
  }

  /** Waits for the end of the turn in progress: its answer is in the log then. */
  answered() {
    return this.answer.waitFor({ state: 'detached' });
  }

  address() {
    return this.page.url().slice(this.base.length);
  }

  end() {
    return this.context.close();
  }
}

/** Runs walks that have nothing to do with each other side by side. One that cannot begin is a failure, too. */
export async function together(walks) {
  const ended = await Promise.allSettled(walks.map((walk) => walk()));
  for (const { reason } of ended.filter((e) => e.status === 'rejected')) {
    failed++;
    console.log(`FAILED a walk ended early: ${reason.stack}`);
  }
}

export function finish() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed || !passed ? 1 : 0;
}

export function expect(condition, words) {
  if (!condition) throw new Error(words);
}

export async function axe(page, where, rules) {
  await page.evaluate(axeSource);
  const found = await page.evaluate((only) => globalThis.axe.run(document, { resultTypes: ['violations'], ...(only ? { runOnly: only } : {}) }), rules);
  const serious = found.violations.filter((v) => v.impact === 'serious' || v.impact === 'critical');
  expect(!serious.length, `axe on ${where}:\n  ${serious.map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')}`).join('\n  ')}`);
}

/** Waits until what the page has drawn by now was measured and put in its place. */
export const drawn = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))));

/** How far a page has jumped by itself since it was loaded: the sum of its layout shifts (CLS), of which 0.1 is "good". */
export const shifts = (page) => page.evaluate(() => new Promise((done) => {
  let sum = 0;
  const seen = new PerformanceObserver((list) => list.getEntries().forEach((e) => (sum += e.hadRecentInput ? 0 : e.value)));
  seen.observe({ type: 'layout-shift', buffered: true });
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(sum))));
}));

/** Every control can be reached: none is cut off by an edge of the window, unless what has it can be scrolled. */
export async function reachable(page, where) {
  const cut = await page.evaluate(() => {
    const scrolls = (e) => e && (['auto', 'scroll'].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
    return [...document.querySelectorAll('main button, main select, main input, main textarea, main h1, nav a')].filter((e) => {
      const box = e.getBoundingClientRect();
      const hidden = !e.checkVisibility({ visibilityProperty: true }) || box.width <= 1 || getComputedStyle(e).clipPath !== 'none';
      return !hidden && (box.left < -1 || box.right > document.documentElement.clientWidth + 1) && !scrolls(e.parentElement);
    }).map((e) => e.outerHTML.slice(0, 160));
  });
  expect(!cut.length, `${where}: controls are cut off: ${cut.slice(0, 3).join(' | ')}`);
}

/** Nothing of a page may need scrolling sideways. */
export async function fits(page, where) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (wide <= 0) return;
  const over = await page.evaluate(() => [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !e.children.length).slice(0, 3).map((e) => e.outerHTML.slice(0, 200)));
  throw new Error(`${where} is ${wide} px wider than the window: ${over.join(' | ')}`);
}

/** A call of the API by a program, with a key where one is given. */
export async function call(method, path, body, { server = base, key = '', headers = {} } = {}) {
  const all = { ...headers };
  if (body) all['Content-Type'] = 'application/json';
  if (key) all.Authorization = `Bearer ${key}`;
  const res = await fetch(server + path, { method, headers: all, body: body && JSON.stringify(body) });
  const text = await res.text();
  if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${text.slice(0, 300)}`);
  return text ? JSON.parse(text) : null;
}
