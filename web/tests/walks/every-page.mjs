// Every page in each size and scheme: nothing serious for axe, nothing too wide, and pictures where they are wanted.
import { Walker, axe, expect, fits, shots, together } from '../browser.mjs';

const sizes = [[1440, 900], [720, 450], [390, 844]]; // 720 is 200 % zoom

export default async function everyPage(browser, pages) {
  const look = ([width, height]) => async () => {
    const w = await Walker.begin(browser, { viewport: { width, height } });
    const { page } = w;
    for (const scheme of ['light', 'dark']) {
      await w.check(`every page at ${width} px, ${scheme}: nothing serious for axe, nothing too wide`, async () => {
        await page.emulateMedia({ colorScheme: scheme });
        const found = [];
        for (const [name, path] of Object.entries(pages)) {
          await w.open(path);
          await page.locator('.loading').waitFor({ state: 'detached' });
          await page.waitForLoadState('load');
          await page.evaluate(() => document.fonts.ready);
          await fits(page, name).catch((err) => found.push(err.message));
          // The markup is one in both schemes; the colours are not.
          if (width !== 720) await axe(page, `${name} (${path})`, scheme === 'dark' ? ['color-contrast'] : undefined).catch((err) => found.push(err.message));
          if (shots && width !== 720) await page.screenshot({ path: `${shots}/${name}-${scheme}${width < 1000 ? '-phone' : ''}.png` });
        }
        expect(!found.length, found.join('\n'));
      });
    }
    await w.end();
  };
  await together(sizes.map(look));
}
