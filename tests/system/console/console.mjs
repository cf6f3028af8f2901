// The console in Chromium, on a whole stack of real processes.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

import { run, test, until } from '../../client/harness.mjs';
import { World } from './world.mjs';

const TO = '+491511234567';
const id = () => `m-${randomBytes(6).toString('hex')}`;

/** A new account of the demo persons. */
async function account(world, fields = {}) {
  const name = `acc-${randomBytes(5).toString('hex')}`;
  await world.documents.put(`accounts/${name}`, { provider: 'simulated', status: 'active', pace: { perMinute: 0 }, ...fields });
  for (const [uid, role] of [['demo-user', 'owner'], ['demo-agent', 'agent'], ['demo-viewer', 'viewer']]) {
    await world.documents.put(`accounts/${name}/members/${uid}`, { role, uid });
  }
  return name;
}

/** A message as a client writes it, due in a year unless told; `status` as the worker would write it. */
async function message(world, accountId, status = 'queued', fields = {}) {
  const requestId = id();
  const threadId = `${accountId}__${TO}`;
  const now = new Date();
  const both = { requestId, accountId, threadId, to: TO, parts: [{ type: 'text', text: 'Your order is ready.' }], createdAt: now, ...fields };
  const shown = status === 'failed' ? 'failed' : 'queued';
  await world.documents.put(`threads/${threadId}/messages/${requestId}`, { ...both, direction: 'outbound', status: shown });
  const due = status === 'uncertain' ? {} : { nextAttemptAt: new Date(now.getTime() + 365 * 86_400_000) };
  const tried = status === 'queued' ? { attempts: 0 } : { attempts: 1, lastError: { code: 'rejected', message: 'The provider rejected it.', retryable: false, at: now } };
  await world.documents.put(`outbox/${requestId}`, { ...both, status, ...due, ...tried });
  return requestId;
}

/** A reminder that fires in a year. */
async function reminder(world, accountId) {
  const reminderId = `reminder-${randomBytes(4).toString('hex')}`;
  await world.documents.put(`reminders/${reminderId}`, {
    accountId, parts: [{ type: 'text', text: 'Hello' }], targets: [{ id: 't1', to: TO }], createdAt: new Date(), timezone: 'UTC', window: { startHour: 0, endHour: 24 },
    schedule: { type: 'once', at: new Date(Date.now() + 365 * 86_400_000) }, status: 'active',
  });
  return reminderId;
}

test('a person signs in with one click, sees their accounts, and signs out', async (world) => {
  const accountId = await account(world);
  const page = await world.signedIn('Otto');
  await page.getByRole('heading', { name: 'Now' }).waitFor();
  await page.getByRole('link', { name: accountId }).waitFor();
  await page.getByText('Times in Europe/Berlin').waitFor();
  await page.getByText('owner@example.com').click();
  await page.getByRole('button', { name: 'Sign out', exact: true }).click();
  await page.getByRole('button', { name: /^Olivia/ }).waitFor();
});

test('a person signs in with email and password, or with Google, and signs out on all devices', async (world) => {
  const page = await world.page();
  await page.goto('/needs');
  await page.getByLabel('Email', { exact: true }).fill('agent@example.com');
  await page.getByLabel('Password', { exact: true }).fill('guess');
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('alert').filter({ hasText: 'The email or the password is wrong.' }).waitFor();
  await page.getByLabel('Password', { exact: true }).fill('local');
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('heading', { name: 'Needs you' }).waitFor();
  await page.getByText('agent@example.com').click();
  await page.getByRole('button', { name: 'Sign out on all devices' }).click();
  await page.getByRole('link', { name: 'Sign in with Google' }).click();
  await page.getByRole('heading', { name: 'Now', exact: true }).first().waitFor();
});

test('the keyboard passes over the menu, and moves between rows', async (world) => {
  const accountId = await account(world);
  for (let index = 0; index < 2; index += 1) await message(world, accountId, 'uncertain');
  const page = await world.signedIn('Agnes', '/needs');
  const focused = (look) => page.evaluate(look);
  await page.locator('tr[data-keys]').nth(1).waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await focused(() => document.activeElement.textContent), 'Skip to the content');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  assert.equal(await focused(() => [...document.querySelectorAll('tr[data-keys]')].indexOf(document.activeElement)), 0, 'the first row follows the menu');
  await page.keyboard.press('j');
  assert.equal(await focused(() => [...document.querySelectorAll('tr[data-keys]')].indexOf(document.activeElement)), 1);
  await page.keyboard.press('k');
  await page.keyboard.press('Tab');
  assert.equal(await focused(() => document.activeElement.closest('tr') === document.querySelector('tr[data-keys]')), true, 'then what is in the row');
});

test('a link to a page leads there after the sign-in', async (world) => {
  const accountId = await account(world);
  const requestId = await message(world, accountId);
  const page = await world.signedIn('Otto', `/messages/${requestId}`);
  await page.getByRole('heading', { name: requestId }).waitFor();
});

test('Now plots what was sent in the last hour, with the rate and what today costs', async (world) => {
  const accountId = await account(world);
  const requestId = await message(world, accountId, 'failed');
  const page = await world.signedIn('Otto', `/messages/${requestId}`);
  await page.getByRole('button', { name: 'Send it again' }).click();
  const lane = await until('the count', () => world.documents.read(`lanes/outbox:${accountId}`), (found) => found?.recent);
  assert.match(lane.recent, /^\d+ 1\|\d+ 1 0 0$/);
  await page.goto('/');
  await page.getByRole('img', { name: /^sent in each of the last 60 minutes: [1-9]/ }).locator('rect').first().waitFor();
  await page.getByRole('img', { name: /^failed in each/ }).waitFor();
  await page.getByRole('img', { name: /^throttled in each/ }).waitFor();
  await page.getByText('sent today (UTC)').waitFor();
  await page.getByText('US dollars at list prices').waitFor();
  await page.locator('.tile', { hasText: accountId }).getByText('sent a minute').waitFor();
});

test('a message is found by id, account, address and status', async (world) => {
  const accountId = await account(world);
  const [waiting, failed] = [await message(world, accountId), await message(world, accountId, 'failed')];
  const page = await world.signedIn('Otto', '/messages');
  const search = async (fields, shown) => {
    await page.goto('/messages');
    for (const [label, value] of Object.entries(fields)) {
      const field = page.getByRole('search').getByLabel(label, { exact: true });
      if (label === 'Status') await field.selectOption(value);
      else await field.fill(value);
    }
    await page.getByRole('button', { name: 'Search' }).click();
    const found = await page.getByRole('rowheader').locator('.id').allInnerTexts();
    assert.deepEqual(found.sort(), shown.sort(), JSON.stringify(fields));
  };
  await search({ Id: waiting }, [waiting]);
  await search({ Account: accountId }, [waiting, failed]);
  await search({ Account: accountId, Status: 'failed' }, [failed]);
  await search({ Account: accountId, Address: TO }, [waiting, failed]);
  await search({ Account: accountId, 'Written before': '2020-01-01T00:00:00' }, []);
  await page.getByText('No message fits').waitFor();
});

test('a message shows its life and why it waits, and is cancelled', async (world) => {
  const accountId = await account(world, { status: 'paused' });
  const requestId = await message(world, accountId);
  const page = await world.signedIn('Otto', `/messages/${requestId}`);
  await page.getByText('Your order is ready.').waitFor();
  await page.getByText('Why:').waitFor();
  await page.getByRole('listitem').filter({ hasText: 'Written' }).waitFor();
  await page.getByRole('button', { name: 'Cancel it' }).click();
  await page.getByText('The message is cancelled.').waitFor();
  assert.equal((await world.documents.read(`outbox/${requestId}`)).status, 'cancelled');
});

test('an uncertain message is settled as the person found it on the phone', async (world) => {
  const accountId = await account(world);
  const [arrived, lost] = [await message(world, accountId, 'uncertain'), await message(world, accountId, 'uncertain')];
  const page = await world.signedIn('Agnes', `/messages/${arrived}`);
  await page.getByRole('button', { name: 'It arrived' }).click();
  await page.getByText(`${arrived} is settled as sent.`).waitFor();
  await page.goto(`/messages/${lost}`);
  await page.getByRole('button', { name: 'It did not arrive' }).click();
  await page.getByText(`${lost} is settled as failed.`).waitFor();
  assert.equal((await world.documents.read(`outbox/${arrived}`)).status, 'sent');
  assert.equal((await world.documents.read(`outbox/${lost}`)).status, 'failed');
});

test('a failed message is sent again, and the open page follows it to the end', async (world) => {
  const accountId = await account(world);
  const requestId = await message(world, accountId, 'failed');
  const page = await world.signedIn('Agnes', `/messages/${requestId}`);
  await page.getByRole('button', { name: 'Send it again' }).click();
  await page.getByText(`${requestId} is back in the queue.`).waitFor();
  await page.locator('#live .pill', { hasText: /^(sent|delivered|read)$/ }).first().waitFor();
  assert.equal((await world.documents.read(`outbox/${requestId}`)).status, 'sent');
});

test('a viewer sees a message and no way to change it', async (world) => {
  const accountId = await account(world);
  const requestId = await message(world, accountId, 'uncertain');
  const page = await world.signedIn('Vera', `/messages/${requestId}`);
  await page.getByText('Your order is ready.').waitFor();
  assert.deepEqual(await page.locator('#live').getByRole('button').allInnerTexts(), []);
});

test('a person without an account learns what to ask for', async (world) => {
  const page = await world.signedIn('Sam');
  await page.getByText('You are not a member of any account').waitFor();
});

/** A run of this account that waits for its window. */
async function pausedRun(world, accountId, status = 'running', total = 0) {
  const runId = `run-${randomBytes(5).toString('hex')}`;
  const now = new Date();
  await world.documents.put(`runs/${runId}`, {
    runId, accountId, parts: [{ type: 'text', text: 'Sale on Saturday' }], timezone: 'UTC', window: { startHour: 0, endHour: 24 }, onWindowEnd: 'stop',
    fireAt: now, windowEndAt: new Date(now.getTime() + 86_400_000), status, expanded: true, total, createdAt: now,
  });
  return runId;
}

test('uncertain messages are settled with one key each', async (world) => {
  const accountId = await account(world);
  const [first, second] = [await message(world, accountId, 'uncertain'), await message(world, accountId, 'uncertain')];
  const page = await world.signedIn('Agnes', '/needs');
  await page.locator(`#row-${first}`).focus();
  await page.keyboard.press('s');
  await page.getByText(`${first} is settled as sent.`).waitFor();
  await page.locator(`#row-${second}`).focus();
  await page.keyboard.press('f');
  await page.getByText(`${second} is settled as failed.`).waitFor();
});

test('an update leaves the focus on the same row and on the same button', async (world) => {
  const accountId = await account(world);
  const first = await message(world, accountId, 'uncertain');
  const page = await world.signedIn('Agnes', '/needs');
  const focused = () => page.evaluate(() => [document.activeElement.id, document.activeElement.textContent]);
  const update = async () => page.locator(`#row-${await message(world, accountId, 'uncertain')}`).waitFor();

  await page.locator(`#row-${first}`).focus();
  await update();
  assert.equal((await focused())[0], `row-${first}`);

  await page.locator(`#row-${first}`).getByRole('button', { name: 'It did not' }).focus();
  await update();
  assert.equal((await focused())[1], 'It did not');
  await page.keyboard.press('Enter');
  await page.getByText(`${first} is settled as failed.`).waitFor();
});

test('all failed messages of an account are sent again after their number was shown', async (world) => {
  const accountId = await account(world);
  const ids = [await message(world, accountId, 'failed'), await message(world, accountId, 'failed')];
  const page = await world.signedIn('Otto', '/needs');
  await page.getByRole('link', { name: `Send all failed of ${accountId} again` }).first().click();
  await page.getByText(`2 failed messages of ${accountId} go back into the queue`).waitFor();
  await page.getByRole('button', { name: 'Send 2 messages again' }).click();
  await page.getByText(`${accountId}: 2 messages are back in the queue.`).waitFor();
  for (const one of ids) await until('sent', () => world.documents.read(`outbox/${one}`), ({ status }) => status === 'sent');
});

test('an account with caps shows how much of its day is used', async (world) => {
  const accountId = await account(world, { dailyCap: 50, warmUp: { startPerDay: 20, factor: 2, untilPerDay: 500 }, newContactsPerDay: 5 });
  const page = await world.signedIn('Otto', `/accounts/${accountId}`);
  await page.getByText('0 of 20 messages', { exact: true }).waitFor();
  await page.getByText('0 of 5', { exact: true }).waitFor();
});

test('an account is paused and resumed, and the log says by whom', async (world) => {
  const accountId = await account(world);
  const page = await world.signedIn('Otto', `/accounts/${accountId}`);
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.locator('.notice', { hasText: `${accountId} is paused.` }).waitFor();
  assert.equal((await world.documents.read(`accounts/${accountId}`)).status, 'paused');
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.locator('.notice', { hasText: `${accountId} sends again.` }).waitFor();
  await page.getByRole('cell', { name: 'account.resume' }).waitFor();
  await page.getByRole('cell', { name: 'demo-user' }).first().waitFor();
});

test('a run shows its progress, is cancelled after a question, and gives a file', async (world) => {
  const accountId = await account(world, { status: 'paused' });
  const runId = await pausedRun(world, accountId, 'running', 1);
  await message(world, accountId, 'queued', { runId });
  const page = await world.signedIn('Otto', '/runs');
  await page.getByRole('link', { name: runId }).click();
  await page.getByText('0 of 1 done').waitFor();
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'CSV' }).click()]);
  assert.equal(file.suggestedFilename(), 'run.csv');
  await page.getByRole('link', { name: 'Cancel …' }).click();
  await page.getByText(/1 messages of .* are cancelled for good/).waitFor();
  await page.getByRole('button', { name: 'Cancel the run' }).click();
  await page.locator('#live .pill', { hasText: 'cancelled' }).waitFor();
});

test('a run is paused and resumed', async (world) => {
  const accountId = await account(world, { status: 'paused' });
  const runId = await pausedRun(world, accountId, 'running', 1);
  await message(world, accountId, 'queued', { runId, targetId: 't1' });
  const page = await world.signedIn('Otto', `/runs/${runId}`);
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.locator('.notice', { hasText: 'Pause is requested' }).waitFor();
  await page.locator('#live .pill', { hasText: 'paused' }).waitFor();
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.locator('.notice', { hasText: 'Resume is requested' }).waitFor();
  await page.locator('#live .pill', { hasText: 'running' }).waitFor();
});

test('failed targets of a run are tried again after their number was shown', async (world) => {
  const accountId = await account(world);
  const runId = await pausedRun(world, accountId, 'partial', 1);
  await message(world, accountId, 'failed', { runId, targetId: 't1' });
  const page = await world.signedIn('Agnes', `/runs/${runId}`);
  await page.getByRole('link', { name: 'Try failed targets again …' }).click();
  await page.getByText(`A new run sends 1 failed messages of ${runId} again.`).waitFor();
  await page.getByRole('button', { name: 'Try 1 again' }).click();
  await page.locator('.notice', { hasText: 'sends them again.' }).waitFor();
  assert.notEqual(new URL(page.url()).pathname, `/runs/${runId}`);
  await page.locator('#live .pill', { hasText: 'success' }).waitFor();
});

test('a reminder is paused and resumed', async (world) => {
  const accountId = await account(world);
  const reminderId = await reminder(world, accountId);
  const page = await world.signedIn('Agnes', '/runs');
  const row = () => page.getByRole('row').filter({ hasText: reminderId });
  await row().getByRole('button', { name: 'Pause' }).click();
  await page.getByText(`The reminder ${reminderId} is paused.`).waitFor();
  await row().getByRole('button', { name: 'Resume' }).click();
  await page.getByText(`The reminder ${reminderId} is active.`).waitFor();
});

test('a reminder is written from a file, shows what it will do, and is added', async (world) => {
  const accountId = await account(world, { timezone: 'Europe/Berlin', pace: { perMinute: 1 }, suppressing: true });
  await world.documents.put(`accounts/${accountId}/suppressed/+491511234568`, { address: '+491511234568', key: '491511234568', because: 'asked', at: new Date() });
  const page = await world.signedIn('Agnes', '/runs');
  await page.getByRole('link', { name: 'New reminder' }).click();
  await page.getByRole('link', { name: accountId, exact: true }).click();
  const csv = 'to;name\n+49 151 1234567;Ann\n+49 151 1234568;Bob\n+49 151 1234569;Zoë\n';
  await page.getByLabel('Or a file').setInputFiles({ name: 'customers.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) });
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Good morning {name}, see you at {place}.');
  await page.getByLabel('Day and time').fill('2090-01-31T09:00');
  await page.getByLabel('From').fill('9');
  await page.getByLabel('To', { exact: true }).fill('9');
  await page.getByRole('button', { name: 'See what it will do' }).click();
  await page.getByRole('alert').filter({ hasText: 'startHour and endHour are the same' }).waitFor();
  await page.getByLabel('To', { exact: true }).fill('18');
  await page.getByRole('button', { name: 'See what it will do' }).click();
  await page.getByRole('alert').filter({ hasText: 'place' }).waitFor();
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Good morning {name}.');
  await page.getByRole('button', { name: 'See what it will do' }).click();
  await page.getByText('Good morning Zoë.').waitFor();
  await page.getByText('3 targets of').waitFor();
  await page.getByText('1 opted out and get nothing').waitFor();
  await page.getByText('31 Jan 2090, 09:00:00').waitFor();
  await page.locator('.why', { hasText: 'it ends 31 Jan 2090, 09:03:00' }).waitFor();
  await page.getByRole('button', { name: 'Change it' }).click();
  await page.getByLabel('To', { exact: true }).fill('20');
  await page.getByRole('button', { name: 'See what it will do' }).click();
  await page.getByText('delivery hours are 9 to 20 in Europe/Berlin').waitFor();
  await page.getByRole('button', { name: 'Add the reminder: 2 messages once' }).click();
  const notice = await page.locator('.notice', { hasText: 'is added for 3 targets.' }).innerText();
  const [reminderId] = /reminder-[0-9a-f]+/.exec(notice);
  const stored = await world.documents.read(`reminders/${reminderId}`);
  assert.equal(stored.createdBy, 'demo-agent');
  assert.deepEqual(stored.targets.map(({ to, variables }) => [to, variables.name]), [['+491511234567', 'Ann'], ['+491511234568', 'Bob'], ['+491511234569', 'Zoë']]);
  await page.getByRole('heading', { name: reminderId }).waitFor();
});

test('a reminder is added by a browser that runs no scripts', async (world) => {
  const accountId = await account(world);
  const page = await world.signedIn('Otto', `/reminders/new?account=${accountId}`, { javaScriptEnabled: false });
  await page.getByLabel('Targets').fill(TO);
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Hello');
  await page.getByLabel('Fires').selectOption('again and again');
  await page.getByLabel('Cron').fill('0 9 1 1 *');
  await page.getByRole('button', { name: 'See what it will do' }).click();
  await page.getByRole('button', { name: 'Add the reminder: 1 message each time' }).click();
  await page.locator('.notice', { hasText: 'is added for 1 targets.' }).waitFor();
});

test('an owner changes settings and members, sees limits, and checks the secrets', async (world) => {
  const accountId = await account(world);
  const page = await world.signedIn('Otto', `/accounts/${accountId}`);
  await page.getByRole('link', { name: 'Settings' }).click();
  await page.getByLabel('pace.perMinute').fill('30');
  await page.getByLabel('timezone').fill('Mars/Base');
  await page.getByRole('button', { name: 'Change the settings' }).click();
  await page.locator('.notice.bad', { hasText: 'Nothing is changed: timezone' }).waitFor();
  await page.getByLabel('pace.perMinute').fill('30');
  await page.getByRole('button', { name: 'Change the settings' }).click();
  await page.locator('.notice', { hasText: 'Changed: pace.perMinute.' }).waitFor();
  await page.getByText('30 messages a minute').waitFor();
  await page.getByLabel('User id in Firebase Auth').fill('new-person');
  await page.getByRole('button', { name: 'Add a member' }).click();
  await page.locator('.notice', { hasText: `new-person is viewer of ${accountId} now.` }).waitFor();
  await page.getByLabel('new-person').first().selectOption('agent');
  await page.getByRole('button', { name: 'Change new-person' }).click();
  await page.locator('.notice', { hasText: `new-person is agent of ${accountId} now.` }).waitFor();
  await page.getByRole('button', { name: 'Remove new-person' }).click();
  await page.locator('.notice', { hasText: 'new-person is no member any more.' }).waitFor();
  await page.getByRole('button', { name: 'Remove demo-user' }).click();
  await page.locator('.notice.bad', { hasText: 'is the only owner' }).waitFor();
  await page.getByRole('button', { name: 'Check the secrets' }).click();
  await page.locator('.notice', { hasText: `${accountId}:` }).waitFor();
  await page.goto(`/accounts/${accountId}`);
  await page.getByRole('row').filter({ hasText: 'Messages a minute = 30' }).waitFor();
});

test('an owner links a phone with the code on the page, and its contacts are listed in pages', async (world) => {
  const accountId = await account(world, { provider: 'waha' });
  const simulated = `${world.given.provider}/_sim/waha/sessions/${accountId}`;
  const play = (body) => fetch(simulated, { method: 'PUT', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  await play({ exists: false, paired: false, startMs: 50 });
  const page = await world.signedIn('Otto', `/accounts/${accountId}`);
  await page.getByRole('link', { name: 'Phone' }).click();
  await page.getByRole('button', { name: 'Link a phone' }).click();
  const code = page.getByRole('img', { name: 'The code to scan with the phone' });
  await code.waitFor();
  assert.ok((await code.locator('svg').boundingBox()).width >= 100);
  await play({ scan: true });
  await page.getByText('The phone is linked.').waitFor();
  await page.getByRole('button', { name: 'Unlink the phone' }).click();
  await page.getByRole('button', { name: 'Link a phone' }).waitFor();
  for (let index = 0; index < 51; index += 1) await world.documents.put(`accounts/${accountId}/contacts/+4915500000${String(index).padStart(2, '0')}`, { name: `Person ${index}`, updatedAt: new Date() });
  await page.goto(`/accounts/${accountId}/contacts`);
  const first = await page.getByRole('rowheader').allInnerTexts();
  await page.getByRole('link', { name: 'More contacts' }).click();
  await page.waitForURL(/after=/);
  const second = await page.getByRole('rowheader').allInnerTexts();
  assert.equal(first.length, 50);
  assert.ok(second.length >= 1 && second.every((one) => !first.includes(one)));
});

test('on the dev stack an operator orders faults, plays the phone, and sees what the rules refused', async (world) => {
  const accountId = await account(world);
  const page = await world.signedIn('Olivia', '/dev');
  await page.getByLabel('errorRate').fill('1');
  await page.getByLabel('forCalls').fill('many');
  await page.getByRole('button', { name: 'Order these faults' }).click();
  await page.locator('.notice.bad', { hasText: 'ForCalls must be a number.' }).waitFor();
  await page.getByLabel('errorRate').fill('1');
  await page.getByLabel('forCalls').fill('1');
  await page.getByRole('button', { name: 'Order these faults' }).click();
  await page.locator('.notice', { hasText: 'Faults: errorRate 1, forCalls 1.' }).waitFor();
  await page.getByRole('button', { name: 'No faults' }).click();
  await page.locator('.notice', { hasText: 'The provider works without faults.' }).waitFor();
  const requestId = await message(world, accountId, 'failed');
  await page.goto(`/messages/${requestId}`);
  await page.getByRole('button', { name: 'Send it again' }).click();
  await page.goto('/dev');
  await page.getByRole('row').filter({ hasText: requestId }).first().waitFor();
  await page.getByLabel('To the account').fill(accountId);
  await page.getByLabel('Text').fill('Where is my order?');
  await page.getByRole('button', { name: 'Write' }).click();
  await page.locator('.notice', { hasText: `${TO} wrote to ${accountId}.` }).waitFor();
  await page.goto(`/messages?account=${accountId}&to=${encodeURIComponent(TO)}`);
  await until('the answer', () => page.reload().then(() => page.getByText('received').count()), (count) => count > 0);
  const path = `projects/${world.given.projectId}/databases/(default)/documents/runs/not-mine`;
  const refused = await fetch(`http://${world.given.firestore}/v1/${path}`);
  assert.equal(refused.status, 403);
  await page.goto('/dev');
  await page.getByRole('row').filter({ hasText: 'runs/not-mine' }).first().waitFor();
});

test('an operator drops a dead letter, runs another again, and runs the audit', async (world) => {
  const job = `job-${randomBytes(4).toString('hex')}`;
  await world.documents.put(`jobs/again-${job}`, { kind: 'nextup', key: `again-${job}`, events: ['e1'], error: 'ValueError: no', at: new Date() });
  await world.documents.put(`jobs/${job}`, { kind: 'nextup', key: job, events: ['e1'], error: 'ValueError: no', at: new Date() });
  const page = await world.signedIn('Olivia', '/lanes');
  await page.getByRole('row').filter({ has: page.getByRole('cell', { name: job, exact: true }) }).getByRole('button', { name: 'Drop' }).click();
  await page.getByText('The job is dropped.').waitFor();
  await page.getByRole('row').filter({ hasText: `again-${job}` }).getByRole('button', { name: 'Retry' }).click();
  await page.locator('.notice', { hasText: `nextup runs again for again-${job}.` }).waitFor();
  await page.goto('/audit');
  await page.getByRole('button', { name: 'Run the audit' }).click();
  await page.getByText(/Every invariant holds|Finding/).first().waitFor();
  await page.getByRole('cell', { name: 'job.drop' }).first().waitFor();
});

test('every page can be used from 320 to 2560 pixels', async (world) => {
  const accountId = await account(world);
  const requestId = await message(world, accountId, 'failed');
  await message(world, accountId, 'uncertain');
  await world.documents.put(`accounts/${accountId}/contacts/${TO}`, { name: 'Ann', updatedAt: new Date() });
  const page = await world.signedIn('Olivia');
  const runId = await pausedRun(world, accountId, 'partial');
  const reminderId = await reminder(world, accountId);
  for (const path of ['/', '/needs', `/messages?account=${accountId}`, `/messages/${requestId}`, '/runs', `/runs/${runId}`, '/reminders/new', `/reminders/new?account=${accountId}`, `/reminders/${reminderId}`, `/reminders/${reminderId}/edit`, `/accounts/${accountId}`, `/accounts/${accountId}/notifications`, `/accounts/${accountId}/settings`, `/accounts/${accountId}/phone`, `/accounts/${accountId}/contacts`, '/lanes', '/audit', '/dev']) {
    await page.goto(path);
    for (const width of [320, 768, 1280, 2560]) {
      await page.setViewportSize({ width, height: 800 });
      const [inner, whole] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
      assert.ok(whole <= inner, `${path} is ${whole} pixels wide on a screen of ${inner}`);
      const ends = await page.locator('.top nav a').evaluateAll((links) => links.map((link) => link.getBoundingClientRect().right));
      assert.ok(ends.length > 1 && ends.every((end) => end <= inner), `a link of the navigation of ${path} ends off the screen: ${ends}`);
      const cut = await page.locator('main :is(td, tbody th, dd, dt, .tile, .card, fieldset, button)').evaluateAll((boxes) => boxes.filter((box) => box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0).map((box) => `${box.tagName} ${box.textContent.trim().slice(0, 60)}`));
      assert.deepEqual(cut, [], `text is wider than its box on ${path} at ${width} pixels`);
    }
  }
});

test('no page has a serious fault of accessibility, in light and in dark', async (world) => {
  const source = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  const check = async (page, where) => {
    await page.evaluate(source);
    const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ['violations'] }));
    const serious = violations.filter(({ impact }) => ['serious', 'critical'].includes(impact));
    assert.deepEqual(serious.map(({ id: rule, nodes }) => `${rule}: ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`).join('; ')}`), [], where);
  };
  const accountId = await account(world);
  const [requestId, runId] = [await message(world, accountId, 'uncertain'), await pausedRun(world, accountId, 'partial')];
  const reminderId = await reminder(world, accountId);
  await world.documents.put(`accounts/${accountId}/notifications/n1`, { kind: 'run.ended', runId, title: '1 of 2 delivered', text: 'Delivery window closed.', state: 'failed', error: 'it answered 500', createdAt: new Date() });
  await message(world, accountId, 'failed');
  await world.documents.put(`accounts/${accountId}/contacts/${TO}`, { name: 'Ann', updatedAt: new Date() });
  await world.documents.put(`accounts/${accountId}/session/current`, { state: 'scan' });
  await world.documents.put(`accounts/${accountId}/session/qr`, { code: '2@code' });
  const paths = ['/', '/needs', `/messages?account=${accountId}`, `/messages/${requestId}`, '/runs', `/runs/${runId}`, '/reminders/new', `/reminders/new?account=${accountId}`, `/reminders/${reminderId}`, `/reminders/${reminderId}/edit`, `/accounts/${accountId}`, `/accounts/${accountId}/notifications`, `/accounts/${accountId}/redrive`, `/accounts/${accountId}/settings`, `/accounts/${accountId}/phone`, `/accounts/${accountId}/contacts`, '/lanes', '/audit', '/dev'];
  for (const colorScheme of ['light', 'dark']) {
    const page = await world.signedIn('Olivia', '/', { colorScheme, bypassCSP: true });
    for (const path of [...paths, '/sign-in']) {
      await page.goto(path);
      await check(page, `${path} in ${colorScheme}`);
    }
    await page.goto(`/reminders/new?account=${accountId}`);
    await page.getByLabel('Targets').fill(`to,name\n${TO},Ann`);
    await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Hello {name}');
    await page.getByRole('button', { name: 'See what it will do' }).click();
    await page.getByRole('alert').waitFor();
    await check(page, `a form with faults in ${colorScheme}`);
    await page.getByLabel('Fires').selectOption('once, now');
    await page.getByRole('button', { name: 'See what it will do' }).click();
    await page.getByText('Hello Ann').waitFor();
    await check(page, `what a reminder will do in ${colorScheme}`);
  }
});

test('a console that is killed loses nothing, and its pages come back by themselves', async (world) => {
  const accountId = await account(world);
  const page = await world.signedIn('Otto', `/messages?account=${accountId}`);
  await page.getByText('Updates by itself.').waitFor();
  process.kill(world.given.consolePid, 'SIGKILL');
  await page.getByText('Connection lost; trying again').waitFor();
  const requestId = await message(world, accountId);
  await page.getByRole('link', { name: requestId }).waitFor();
  await page.getByText('Updates by itself.').waitFor();
});

const world = await World.start(JSON.parse(process.env.WORLD));
await run(world);
await world.end();
