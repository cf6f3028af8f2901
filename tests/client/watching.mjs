// client/outbox.js with the real SDK: what its watches tell, and whom they tell nothing.

import assert from 'node:assert/strict';

import { Timestamp, disableNetwork, enableNetwork } from 'firebase/firestore';

import {
  OutboxError,
  cancel,
  markRead,
  newRequestId,
  scheduleMessage,
  sendMessage,
  threadIdOf,
  watchAccounts,
  watchMessage,
  watchThread,
  watchThreads,
  watchWaiting,
} from '../../client/outbox.js';
import { Seen, run, test } from './harness.mjs';
import { World } from './world.mjs';

const TO = '+491511234567';
const fail = (error) => {
  throw error;
};

const newMessage = ({ id, agent: uid }, to, text) => ({ requestId: newRequestId(), accountId: id, to, text, uid });

async function agent(world) {
  const account = await world.account();
  const threadId = threadIdOf(account.id, TO);
  return {
    account,
    threadId,
    db: world.client(account.agent),
    message: (text = 'Hello') => newMessage(account, TO, text),
    path: ({ requestId }) => `threads/${threadId}/messages/${requestId}`,
  };
}

function watched(watch) {
  const seen = new Seen();
  const stop = watch(seen.add);
  return { seen, stop };
}

test('a message is watched from before it exists until it is read', async (world) => {
  const { db, threadId, message, path } = await agent(world);
  const one = message();
  const which = { threadId, requestId: one.requestId };
  const { seen, stop } = watched((add) => watchMessage(db, which, add, fail));
  await seen.until('nothing yet', (value) => value === null);
  await sendMessage(db, one);
  const queued = await seen.until('queued, at the server', (value) => value && !value.isPending);
  assert.equal(queued.status, 'queued');
  assert.ok(queued.createdAt instanceof Date);
  assert.equal(seen.values.find(Boolean).isPending, true, 'it was shown before the server had it');
  const at = Timestamp.now();
  await world.change(path(one), { status: 'sent', sentAt: at, providerMessageId: 'p-1' });
  await world.change(path(one), { status: 'delivered', deliveredAt: at });
  await world.change(path(one), { status: 'read', readAt: at });
  const read = await seen.until('read', (value) => value?.status === 'read');
  stop();
  assert.deepEqual([read.sentAt, read.deliveredAt, read.readAt], [at.toDate(), at.toDate(), at.toDate()]);
  assert.deepEqual(read.parts, [{ type: 'text', text: 'Hello' }]);
  assert.equal(read.direction, 'outbound');
});

test('a failure is shown with its reason', async (world) => {
  const { db, threadId, message, path } = await agent(world);
  const one = message();
  await sendMessage(db, one);
  const error = { code: 'recipient_invalid', message: 'no such number' };
  await world.change(path(one), { status: 'failed', failedAt: Timestamp.now(), error });
  const { seen, stop } = watched((add) => watchMessage(db, { threadId, requestId: one.requestId }, add, fail));
  const failed = await seen.until('failed', (value) => value?.status === 'failed');
  stop();
  assert.deepEqual(failed.error, error);
  assert.ok(failed.failedAt instanceof Date);
});

test('what is sent offline is shown at once, as pending', async (world) => {
  const { db, threadId, message } = await agent(world);
  const { seen, stop } = watched((add) => watchThread(db, threadId, add, { onError: fail }));
  await disableNetwork(db);
  const sending = sendMessage(db, message('From the tunnel'));
  const [pending] = await seen.until('one message', (messages) => messages.length === 1);
  assert.equal(pending.isPending, true);
  assert.ok(pending.createdAt instanceof Date, 'with a time to show');
  await enableNetwork(db);
  await sending;
  const [stored] = await seen.until('at the server', ([first]) => first?.isPending === false);
  stop();
  assert.equal(stored.id, pending.id);
});

test('a thread shows its last messages, oldest first, in both directions', async (world) => {
  const { db, threadId, message } = await agent(world);
  for (const text of ['one', 'two', 'three']) await sendMessage(db, message(text));
  await world.put(`threads/${threadId}/messages/in-1`, {
    requestId: 'in-1', accountId: threadId.split('__')[0], threadId, to: TO, direction: 'inbound', status: 'delivered',
    parts: [{ type: 'text', text: 'four' }], createdAt: Timestamp.fromMillis(Date.now() + 1000),
  });
  const { seen, stop } = watched((add) => watchThread(db, threadId, add, { last: 3, onError: fail }));
  const texts = (messages) => messages.map(({ parts }) => parts[0].text).join(' ');
  const messages = await seen.until('the last three', (value) => texts(value) === 'two three four');
  stop();
  assert.deepEqual(messages.map(({ direction }) => direction), ['outbound', 'outbound', 'inbound']);
});

test('an account shows its conversations, the latest first, and no other', async (world) => {
  const { db, account } = await agent(world);
  const other = await agent(world);
  await sendMessage(other.db, other.message());
  const { seen, stop } = watched((add) => watchThreads(db, account.id, add, { onError: fail }));
  const order = (threads) => threads.map((thread) => thread.to).join(' ');
  await sendMessage(db, newMessage(account, 'first', 'Hi'));
  await sendMessage(db, newMessage(account, 'second', 'Hi'));
  await seen.until('two', (threads) => order(threads) === 'second first');
  await sendMessage(db, newMessage(account, 'first', 'Hi'));
  const [latest] = await seen.until('the other way round', (threads) => order(threads) === 'first second');
  stop();
  assert.equal(latest.id, threadIdOf(account.id, 'first'));
  assert.equal(latest.accountId, account.id);
  assert.equal(latest.lastMessageText, 'Hi');
  assert.equal(latest.unreadCount, 0);
  assert.ok(latest.lastMessageAt instanceof Date);
});

test('a person follows the own memberships, of accounts alone, and of no other person', async (world) => {
  const uid = `person-${newRequestId()}`;
  const [first, second] = [(await world.account()).id, (await world.account()).id].sort();
  const { seen, stop } = watched((add) => watchAccounts(world.client(uid), uid, add, { onError: fail }));
  const listed = (accounts) => accounts.map(({ accountId, role }) => `${accountId} ${role}`).join();
  await seen.until('none', (accounts) => accounts.length === 0);
  await world.put(`teams/t/members/${uid}`, { uid, role: 'captain' });
  await world.put(`accounts/${second}/members/${uid}`, { uid, role: 'viewer' });
  await world.put(`accounts/${first}/members/${uid}`, { uid, role: 'owner' });
  await seen.until('both', (accounts) => listed(accounts) === `${first} owner,${second} viewer`);
  stop();
  const refused = await new Promise((resolve) => { watchAccounts(world.client('other'), uid, () => {}, { onError: resolve }); });
  assert.equal(refused.code, 'not-allowed');
});

test('a conversation that was looked at has nothing unread', async (world) => {
  const { db, account, threadId, message } = await agent(world);
  await sendMessage(db, message());
  await world.change(`threads/${threadId}`, { unreadCount: 2 });
  const { seen, stop } = watched((add) => watchThreads(db, account.id, add, { onError: fail }));
  await seen.until('two unread', ([thread]) => thread?.unreadCount === 2);
  await markRead(db, threadId);
  await seen.until('none', ([thread]) => thread?.unreadCount === 0);
  stop();
  assert.equal((await world.read(`threads/${threadId}`)).unreadCount, 0);
});

test('what waits is shown with its time, the wish to cancel it and its last error, until it is sent', async (world) => {
  const { db, account, threadId, message } = await agent(world);
  const [now, later] = [message('now'), message('later')];
  const at = new Date(Date.now() + 3_600_000);
  const which = { accountId: account.id, threadId };
  const { seen, stop } = watched((add) => watchWaiting(db, which, add, { onError: fail }));
  await sendMessage(db, now);
  await scheduleMessage(db, { ...later, at });
  const one = (waiting, { requestId }) => waiting.find((entry) => entry.requestId === requestId);
  const both = await seen.until('both', (waiting) => one(waiting, now) && one(waiting, later));
  assert.deepEqual(one(both, later).at, at);
  assert.equal(one(both, later).isCancelling, false);
  await cancel(db, later.requestId);
  await seen.until('cancelling', (waiting) => one(waiting, later)?.isCancelling);
  const lastError = { code: 'provider_unavailable', message: 'try later', retryable: true, at: Timestamp.now() };
  await world.change(`outbox/${now.requestId}`, { attempts: 1, lastError });
  const tried = await seen.until('the error', (waiting) => one(waiting, now)?.lastError);
  assert.deepEqual(one(tried, now).lastError, { code: 'provider_unavailable', message: 'try later' });
  await world.change(`outbox/${now.requestId}`, { status: 'sent' });
  await world.change(`outbox/${later.requestId}`, { status: 'cancelled' });
  await seen.until('nothing left', (waiting) => waiting.length === 0 && seen.values.length > 4);
  stop();
});

/** An account with a message. */
async function conversation(world) {
  const account = await world.account();
  const message = newMessage(account, TO, 'Hi');
  await sendMessage(world.client(account.agent), message);
  return { account, requestId: message.requestId, threadId: threadIdOf(account.id, TO) };
}

/** Each watch, and what its listeners were told. */
function watches(db, { account, requestId, threadId }) {
  const start = (watch) => {
    const told = { seen: new Seen(), errors: new Seen() };
    watch(told.seen.add, told.errors.add);
    return told;
  };
  return [
    start((add, onError) => watchMessage(db, { threadId, requestId }, add, onError)),
    start((add, onError) => watchThread(db, threadId, add, { onError })),
    start((add, onError) => watchThreads(db, account.id, add, { onError })),
    start((add, onError) => watchWaiting(db, { accountId: account.id, threadId }, add, { onError })),
  ];
}

test('a viewer is shown everything', async (world) => {
  const here = await conversation(world);
  for (const { seen } of watches(world.client(here.account.viewer), here)) {
    await seen.until('what is there', (value) => (Array.isArray(value) ? value.length === 1 : value));
  }
});

test('a stranger is shown nothing, and each watch says so', async (world) => {
  const here = await conversation(world);
  for (const { seen, errors } of watches(world.client('stranger'), here)) {
    const error = await errors.until('a refusal', Boolean);
    assert.ok(error instanceof OutboxError);
    assert.equal(error.code, 'not-allowed');
    assert.deepEqual(seen.values, []);
  }
});

const world = new World(JSON.parse(process.env.WORLD));
await run(world);
await world.end();
