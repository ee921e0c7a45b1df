// Walks through every page of the inspector as a person would, in a real browser, before real servers.
import { launch, finish, together } from './browser.mjs';
import { known } from './fixtures.mjs';
import everyPage from './walks/every-page.mjs';
import hostile from './walks/hostile.mjs';
import keys from './walks/keys.mjs';
import long from './walks/long.mjs';
import memory from './walks/memory.mjs';
import newcomer from './walks/newcomer.mjs';
import reader from './walks/reader.mjs';
import recorded from './walks/recorded.mjs';
import talk from './walks/talk.mjs';
import work from './walks/work.mjs';

const browser = await launch();
const pages = async () => {
  const seen = await Promise.all([talk(browser), work(browser)]);
  await everyPage(browser, { conversations: '/conversations', search: '/conversations?q=queue', ...seen[0], ...seen[1], memory: await known(), connect: '/connect', health: '/health' });
};
const inTurn = (...walks) => async () => {
  for (const walk of walks) await walk(browser);
};
await together([pages, inTurn(newcomer, keys, memory, long), inTurn(reader, hostile, recorded)]);
await browser.close();
finish();
