// A campaign in Chromium, on a whole stack of real processes: from a file of targets to the notification of its end.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';

import { run, test, until } from '../../client/harness.mjs';
import { World } from './world.mjs';

const TARGETS = 12;
const address = (number) => `+49151123450${String(number).padStart(2, '0')}`;
const csv = (rows) => ({ name: 'people.csv', mimeType: 'text/csv', buffer: Buffer.from(['to;name', ...rows, ''].join('\n')) });
const rows = () => Array.from({ length: TARGETS }, (_, number) => `${address(number)};Person ${number}`);

/** An account of the demo persons that sends forty messages a minute, and whose owner has a device. */
async function account(world) {
  const name = `acc-${randomBytes(5).toString('hex')}`;
  await world.documents.put(`accounts/${name}`, { provider: 'simulated', status: 'active', timezone: 'Europe/Berlin', pace: { perMinute: 40, burst: 1 } });
  await world.documents.put(`accounts/${name}/members/demo-user`, { role: 'owner', uid: 'demo-user' });
  await world.documents.put(`accounts/${name}/devices/phone`, { uid: 'demo-user', token: `token-of-${name}`, createdAt: new Date(Date.now() - 60_000) });
  return name;
}

const json = async (url) => (await fetch(url)).json();

/** What the provider simulator accepted of the account. */
const accepted = async (world, accountId) =>
  (await json(`${world.given.provider}/_sim/calls`)).filter((call) => call.accountId === accountId);

test('a campaign is written, watched, paused, changed and resumed, and notifies its owner', async (world) => {
  const accountId = await account(world);
  const page = await world.signedIn('Otto', `/reminders/new?account=${accountId}`);

  // One bad target: refused with its line, and nothing is stored.
  await page.getByLabel('Or a file').setInputFiles(csv([...rows().slice(0, 3), 'not a number;Zoë', ...rows().slice(3)]));
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Good morning {name}.');
  await page.getByLabel('Fires').selectOption('once, now');
  await page.getByLabel('From').fill('0');
  await page.getByLabel('To', { exact: true }).fill('24');
  await page.getByRole('button', { name: 'See what it will do' }).click();
  await page.getByRole('alert').filter({ hasText: 'line 5' }).waitFor();

  await page.getByLabel('Or a file').setInputFiles(csv(rows()));
  await page.getByRole('button', { name: 'See what it will do' }).click();
  await page.getByText('Good morning Person 0.').waitFor();
  await page.getByRole('button', { name: `Add the reminder: ${TARGETS} messages once` }).click();
  const notice = await page.locator('.notice', { hasText: `is added for ${TARGETS} targets.` }).innerText();
  const [reminderId] = /reminder-[0-9a-f]+/.exec(notice);

  // Watched: the page follows without being loaded again.
  await page.getByRole('link', { name: new RegExp(`^${reminderId}-`) }).first().click();
  await page.getByText(`of ${TARGETS} done`).waitFor();
  await page.evaluate(() => { window.isTheSamePage = true; });
  const sent = page.locator('.counts div', { hasText: /^sent/ }).locator('dd');
  await until('the progress', () => sent.innerText(), (shown) => Number(shown) > 0);
  assert.ok(await page.evaluate(() => window.isTheSamePage));

  await page.getByRole('button', { name: 'Pause' }).click();
  await page.locator('.lead .pill', { hasText: 'paused' }).waitFor();
  const before = (await accepted(world, accountId)).length;
  assert.ok(before > 0 && before < TARGETS, `${before} were sent before the pause`);

  // Changed while its run is paused: the run goes on as it was.
  await page.locator('.lead').getByRole('link', { name: reminderId }).click();
  await page.getByRole('link', { name: 'Change …' }).click();
  assert.equal(await page.getByRole('textbox', { name: 'Text', exact: true }).inputValue(), 'Good morning {name}.');
  await page.getByRole('button', { name: 'Change it' }).click();
  await page.getByRole('alert').filter({ hasText: 'Nothing is changed.' }).waitFor();
  await page.getByLabel('From').fill('8');
  await page.getByLabel('To', { exact: true }).fill('8');
  await page.getByRole('button', { name: 'Change it' }).click();
  await page.getByRole('alert').filter({ hasText: 'startHour and endHour are the same' }).waitFor();
  await page.getByLabel('To', { exact: true }).fill('20');
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Good evening {name}.');
  await page.getByRole('button', { name: 'Change it' }).click();
  await page.locator('.notice', { hasText: `The reminder ${reminderId} is changed.` }).waitFor();
  await page.getByText('8 to 20 in Europe/Berlin').waitFor();
  await page.getByText('Good evening {name}.').waitFor();
  assert.equal((await accepted(world, accountId)).length, before, 'nothing goes out while the run is paused');

  await page.getByRole('link', { name: new RegExp(`^${reminderId}-`) }).click();
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByText(`${TARGETS} of ${TARGETS} delivered.`).waitFor();
  await page.locator('.lead .pill', { hasText: 'success' }).waitFor();
  assert.equal((await accepted(world, accountId)).length, TARGETS);
  const requestIds = new Set((await accepted(world, accountId)).map((call) => call.requestId));
  assert.equal(requestIds.size, TARGETS);
  for (const requestId of requestIds) {
    const { to, parts } = await world.documents.read(`outbox/${requestId}`);
    assert.equal(parts[0].text, `Good morning Person ${Number(to.slice(-2))}.`);
  }

  // The notification: on the account's page, and on the owner's device.
  await page.goto(`/accounts/${accountId}`);
  await page.getByRole('link', { name: 'Notifications' }).click();
  await page.getByRole('rowheader', { name: `${TARGETS} of ${TARGETS} delivered` }).waitFor();
  await page.locator('.pill', { hasText: 'delivered' }).waitFor();
  const told = (await json(`${world.given.provider}/_sim/notifications`)).filter((one) => JSON.stringify(one).includes(accountId));
  assert.equal(told.length, 1);
  assert.ok(JSON.stringify(told[0]).includes(`${TARGETS} of ${TARGETS} delivered`));
});

test('a reminder is removed, and its runs stay', async (world) => {
  const accountId = await account(world);
  const reminderId = `reminder-${randomBytes(4).toString('hex')}`;
  await world.documents.put(`reminders/${reminderId}`, {
    accountId, targets: [{ id: 'a', to: address(1) }], parts: [{ type: 'text', text: 'Hello' }], timezone: 'Europe/Berlin',
    window: { startHour: 0, endHour: 24 }, schedule: { type: 'cron', cron: '0 9 1 1 *' }, onWindowEnd: 'stop', missed: 'skip', status: 'active',
  });
  const page = await world.signedIn('Otto', `/reminders/${reminderId}`);
  await page.getByRole('link', { name: 'Remove …' }).click();
  await page.getByText('and its 1 targets are deleted').waitFor();
  await page.getByRole('button', { name: 'Remove the reminder' }).click();
  await page.locator('.notice', { hasText: `The reminder ${reminderId} is removed.` }).waitFor();
  assert.equal(await page.getByRole('rowheader', { name: reminderId }).count(), 0);
});

const world = await World.start(JSON.parse(process.env.WORLD));
await run(world);
await world.end();
