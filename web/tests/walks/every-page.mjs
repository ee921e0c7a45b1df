// Every page in each size and scheme: nothing serious for axe, nothing too wide, and pictures where they are wanted.
import { Walker, all, axe, expect, fits, reachable, shots, together } from '../browser.mjs';

const sizes = { 1440: 900, 720: 450, 390: 844 }; // 720 is 200 % zoom

export default async function everyPage(browser, pages) {
  const visit = async (w, name, path) => {
    const { page } = w;
    const found = [];
    const attempt = (f) => f.catch((err) => found.push(err.message));
    const settled = async () => {
      await page.locator('.loading').waitFor({ state: 'detached' });
      await page.evaluate(() => document.fonts.ready);
    };
    for (const [width, height] of Object.entries(sizes)) {
      await page.setViewportSize({ width: Number(width), height });
      await page.emulateMedia({ colorScheme: 'light' });
      // A page that was made smaller is the page of a small window; that is looked at from its beginning, too.
      if (all) await w.open(path);
      else if (width === '1440' || !w.address()) await w.go(path);
      await settled();
      const where = `${name} (${path}) at ${width} px`;
      await attempt(fits(page, where));
      await attempt(reachable(page, where));
      if (width === '720' && !all) continue;
      // The markup is one in every size and scheme; the colours and what can be scrolled are not.
      await attempt(axe(page, where, width === '1440' || all ? undefined : ['color-contrast', 'scrollable-region-focusable', 'target-size']));
      if (shots && width !== '720') await page.screenshot({ path: `${shots}/${name}-light-${width}.png` });
      if (width !== '1440' && !all) continue;
      await page.emulateMedia({ colorScheme: 'dark' });
      await attempt(axe(page, `${where}, dark`, ['color-contrast']));
      if (shots && width !== '720') await page.screenshot({ path: `${shots}/${name}-dark-${width}.png` });
    }
    expect(!found.length, found.join('\n'));
  };
  const list = Object.entries(pages);
  const walks = [0, 1].map((half) => async () => {
    const w = await Walker.begin(browser);
    for (const [name, path] of list.filter((_, i) => i % 2 === half)) await w.check(`every page in every size and scheme: ${name}`, () => visit(w, name, path));
    await w.end();
  });
  await together(walks);
}
