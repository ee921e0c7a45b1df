// What the checks of the inspector share: a browser, and what counts as a failure on every page.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

export const base = process.env.INSPECTOR_URL;
export const shots = process.env.INSPECTOR_SHOTS;
const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let passed = 0;
let failed = 0;
const problems = [];
/** What a check expects of the server, such as a 404 that the page has to show. */
let expected = [];

export async function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
}

/** Watches a context: console errors, failed and foreign requests, and dialogs of scripts are failures. */
export function watch(context) {
  const own = new URL(base).origin;
  context.on('console', (m) => {
    if (m.type() === 'error' && !expected.some((e) => e.test(`${m.text()} ${m.location().url}`))) problems.push(`console: ${m.text()} (${m.location().url})`);
  });
  context.on('weberror', (e) => problems.push(`script: ${e.error().stack}`));
  context.on('dialog', (d) => {
    problems.push(`a script opened a dialog: ${d.message()}`);
    void d.dismiss();
  });
  context.on('request', (r) => {
    const url = new URL(r.url());
    if (url.origin !== own && !['data:', 'blob:'].includes(url.protocol)) problems.push(`a request left the page's own server: ${r.url()}`);
  });
  context.on('requestfailed', (r) => {
    const why = r.failure()?.errorText ?? '';
    // Streams are closed when a page is left.
    if (why !== 'net::ERR_ABORTED' && !expected.some((e) => e.test(`${why} ${r.url()}`))) problems.push(`failed: ${r.url()}: ${why}`);
  });
}

/** A check; allow are failures that it provokes. INSPECTOR_ONLY is an expression for the names of those that are run. */
export async function check(name, body, allow = []) {
  if (!new RegExp(process.env.INSPECTOR_ONLY || '.').test(name)) return;
  expected = allow;
  problems.length = 0;
  const at = Date.now();
  try {
    await body();
    if (problems.length) throw new Error(problems.join('\n  '));
    passed++;
    console.log(`ok ${name} (${Date.now() - at} ms)`);
  } catch (err) {
    failed++;
    console.log(`FAILED ${name}: ${err.message}\n  ${problems.join('\n  ')}`);
  }
}

export function finish() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed ? 1 : 0;
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

/** Nothing of a page may need scrolling sideways. */
export async function fits(page, where) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(wide <= 0, `${where} is ${wide} px wider than the window`);
}

export async function call(method, path, body) {
  const res = await fetch(base + path, { method, headers: body ? { 'Content-Type': 'application/json' } : {}, body: body && JSON.stringify(body) });
  const text = await res.text();
  if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${text.slice(0, 300)}`);
  return text ? JSON.parse(text) : null;
}
