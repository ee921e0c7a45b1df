// What several agents do: crews, runs and tasks, and the pages about the server.
import { Walker, call } from '../browser.mjs';

/** Gives the addresses of what it saw, for the checks that look at every page. */
export default async function work(browser) {
  const w = await Walker.begin(browser);
  const { page } = w;
  let run = '';
  let task = '';

  await w.check('how did the crew talk: columns, cursors, play and speak', async () => {
    await w.open('/crews');
    await page.getByRole('link', { name: 'Plan, build, review' }).click();
    await page.getByLabel('Message to the crew').fill('Make a plan for a small garden.');
    await page.getByLabel('Your name').fill('Ann');
    await page.getByRole('button', { name: 'Speak' }).click();
    await page.getByText('Ann', { exact: true }).waitFor();
    await page.getByText(/has seen up to/).first().waitFor();
    await page.getByText('finished').waitFor();
    await page.getByRole('link', { name: 'Log', exact: true }).click();
    await w.row('Make a plan for a small garden.').first().waitFor();
    await w.row('Here I am Builder').first().waitFor();
    await page.getByText(/Step builder: finished.*nothing to add/).first().waitFor();
    await page.goBack();
    await page.getByRole('link', { name: /Compare roles/ }).click();
    await page.getByText(/Equal for/).waitFor();
    // Nobody has spoken to the crew at first, and the page has to find that out.
  }, [/404.*crews\/example\/status/]);

  await w.check('how far is the run: graph, approval, result', async () => {
    await w.open('/runs');
    await page.getByRole('listitem').filter({ hasText: 'Write release notes' }).getByRole('button', { name: 'Start' }).click();
    await page.getByLabel(/version/).fill('1.4');
    await page.getByLabel(/changes/).fill('Uploads are tried again.');
    await page.getByRole('dialog').getByRole('button', { name: 'Start' }).click();
    await page.getByRole('button', { name: /Approve/ }).waitFor();
    run = w.address();
    await page.getByRole('button', { name: /sort ✓ done/ }).click();
    await page.getByRole('button', { name: /approve ◻ waits/ }).click();
    await page.getByRole('button', { name: /Approve/ }).click();
    await page.getByText('finished').first().waitFor();
    await page.getByRole('heading', { name: 'Result' }).waitFor();
  });

  await w.check('what was given away: prompt, history, agent, output', async () => {
    const told = await call('POST', '/api/conversations', { key: 'explains', title: 'Retries' });
    await call('POST', `/api/conversations/${told.id}/entries`, { entries: [{ role: 'user', content: 'Uploads that fail are lost.' }, { role: 'assistant', content: 'They are sent again now.' }] });
    await w.open('/tasks');
    await page.getByRole('button', { name: 'New' }).click();
    await page.getByLabel('What is to be done').fill('Write the release note of the retries.');
    await page.getByLabel(/Conversation that explains it/).fill('explains');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText(/The history that explains it/).waitFor();
    task = w.address();
    await page.getByRole('button', { name: 'Deploy' }).click();
    await page.getByText('completed').first().waitFor();
    await page.getByText(/shown \d+ message/).first().waitFor();
  });

  await w.check('is it well', async () => {
    await w.open('/health');
    await page.getByRole('heading', { name: 'Latency by stage' }).waitFor();
    await page.getByRole('cell', { name: /^store/ }).first().waitFor();
  });

  await w.end();
  return { crew: '/crews/example', crews: '/crews', run, runs: '/runs', task, tasks: '/tasks' };
}
