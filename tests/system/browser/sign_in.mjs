// The chat page with sign-in, in Chromium, on a whole stack of real processes.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

import { run, test, until } from '../../client/harness.mjs';
import { Chat, World } from './world.mjs';

const TO = '+491511234567';

/** A new account with these members: uid -> role. */
async function account(world, roles) {
  const { id } = await world.documents.account();
  for (const [uid, role] of Object.entries(roles)) await join(world, id, uid, role);
  return id;
}

async function join(world, accountId, uid, role) {
  await world.documents.put(`accounts/${accountId}/members/${uid}`, { uid, role });
}

async function opened(world, path = '', context = null) {
  const page = await (context ?? (await world.context())).newPage();
  await page.goto(`${world.given.page}/demo/${path}`);
  return page;
}

async function signIn(page, email, password = 'local') {
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}

const accountsShown = (page) => page.$$eval('#account option', (options) => options.map(({ value }) => value));

test('a member signs in, sends as that user, stays signed in after a reload, and signs out', async (world) => {
  const accountId = await account(world, { 'demo-agent': 'agent' });
  const page = await opened(world, `?${new URLSearchParams({ account: accountId, to: TO })}`);
  await signIn(page, 'agent@example.com');
  const chat = new Chat(page);
  await chat.say('Hello');
  const id = await chat.becomes('Hello', 'read');
  assert.equal((await world.documents.read(`outbox/${id}`)).createdBy, 'demo-agent');
  await page.reload();
  await chat.becomes('Hello', 'read');
  await page.getByText('agent@example.com').waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Email').waitFor();
  assert.equal(await page.getByText('Hello').count(), 0);
  const stores = await page.evaluate(async () => (await indexedDB.databases()).map(({ name }) => name));
  assert.deepEqual(stores.filter((name) => name.startsWith('firestore/')), [], 'the next person finds no documents');
});

test('a wrong password is said in words, and the next try works', async (world) => {
  const page = await opened(world, '', await world.context({ expects: /status of 400/ }));
  await signIn(page, 'agent@example.com', 'wrong');
  await page.getByText('The email or the password is wrong.').waitFor();
  await signIn(page, 'agent@example.com');
  await page.getByText('agent@example.com').waitFor();
});

test('the accounts are those of the person, and a new membership shows at once', async (world) => {
  const page = await opened(world);
  await signIn(page, 'stranger@example.com');
  await page.getByText('You are not a member of an account yet.').waitFor();
  const [first, second, other] = await Promise.all([{}, {}, { 'demo-viewer': 'owner' }].map((roles) => account(world, roles)));
  await join(world, first, 'demo-stranger', 'owner');
  await until('the first account', () => accountsShown(page), (shown) => shown.join() === first);
  await join(world, second, 'demo-stranger', 'viewer');
  await until('both accounts', () => accountsShown(page), (shown) => shown.join() === [first, second].sort().join());
  assert.ok(!(await accountsShown(page)).includes(other));
  assert.equal(await page.getByText('You are not a member').count(), 0);
});

test('a viewer reads, and what the rules refuse is said in words', async (world) => {
  const accountId = await account(world, { 'demo-viewer': 'viewer' });
  await world.inbound(accountId, TO, 'Are you there?');
  const page = await opened(world, `?${new URLSearchParams({ account: accountId, to: TO })}`);
  await signIn(page, 'viewer@example.com');
  const chat = new Chat(page);
  await chat.message('Are you there?').waitFor();
  await chat.say('Not allowed');
  await page.getByText('You may not do this').waitFor();
  assert.deepEqual(await world.calls(accountId), []);
});

test('the SDK renews an ID token, and the emulator believes the new one', async (world) => {
  const accountId = await account(world, { 'demo-agent': 'agent' });
  const page = await opened(world, `?${new URLSearchParams({ account: accountId, to: TO })}`);
  await signIn(page, 'agent@example.com');
  await page.getByText('agent@example.com').waitFor();
  const uid = await page.evaluate(async () => {
    const [{ getApp }, { getAuth }] = await Promise.all([import('firebase/app'), import('firebase/auth')]);
    const { claims } = await getAuth(getApp()).currentUser.getIdTokenResult(true);
    return claims.sub;
  });
  assert.equal(uid, 'demo-agent');
  const chat = new Chat(page);
  await chat.say('Still here');
  await chat.becomes('Still here', 'read');
});

test('a second tab follows when the first one signs out', async (world) => {
  const context = await world.context();
  const first = await opened(world, '', context);
  await signIn(first, 'agent@example.com');
  await first.getByText('agent@example.com').waitFor();
  const second = await opened(world, '', context);
  await second.getByText('agent@example.com').waitFor();
  await first.getByRole('button', { name: 'Sign out' }).click();
  await second.getByLabel('Email').waitFor();
});

test('Google is offered where the configuration says so, and its failure is said in words', async (world) => {
  const plain = await opened(world);
  await plain.getByLabel('Email').waitFor();
  assert.equal(await plain.getByRole('button', { name: 'Sign in with Google' }).count(), 0);
  const context = await world.context({ asks: 'https://apis.google.com/' });
  const page = await context.newPage();
  await page.goto(`${world.given.googlePage}/demo/`);
  await page.getByRole('button', { name: 'Sign in with Google' }).click();
  await page.getByText('No connection to the sign-in service.').waitFor();
});

test('the form has no serious fault of accessibility and fits the smallest screen', async (world) => {
  const source = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  for (const colorScheme of ['light', 'dark']) {
    const page = await opened(world, '', await world.context({ colorScheme, viewport: { width: 320, height: 568 } }));
    await page.getByLabel('Email').waitFor();
    await page.evaluate(source);
    const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ['violations'] }));
    const serious = violations.filter(({ impact }) => ['serious', 'critical'].includes(impact));
    assert.deepEqual(serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join()}`), [], colorScheme);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing is cut off');
  }
});

const world = await World.start(JSON.parse(process.env.WORLD));
await run(world);
await world.end();
