// client/outbox.js with the real SDK: what is written, and that it is written once.

import assert from 'node:assert/strict';

import { Timestamp, disableNetwork, enableNetwork, serverTimestamp } from 'firebase/firestore';

import { OutboxError, cancel, newRequestId, scheduleMessage, sendMessage, threadIdOf } from '../../client/outbox.js';
import { run, test, until } from './harness.mjs';
import { World } from './world.mjs';

const TO = '+491511234567';

/** An account, its agent's client, and a message of theirs. */
async function agent(world) {
  const account = await world.account();
  const message = { requestId: newRequestId(), accountId: account.id, to: TO, text: 'Hello', uid: account.agent };
  const threadId = threadIdOf(account.id, TO);
  return {
    account,
    message,
    db: world.client(account.agent),
    thread: `threads/${threadId}`,
    shown: `threads/${threadId}/messages/${message.requestId}`,
    outbox: `outbox/${message.requestId}`,
  };
}

function refusedAs(code, words = /./) {
  return (error) => {
    assert.ok(error instanceof OutboxError, `${error}`);
    assert.equal(error.code, code, error.message);
    assert.match(error.message, words);
    return true;
  };
}

const keys = (fields) => Object.keys(fields ?? {}).sort().join(' ');

test('a message is three documents with the fields of the contract', async (world) => {
  const { account, message, db, thread, shown, outbox } = await agent(world);
  const written = await sendMessage(db, message);
  const threadId = threadIdOf(account.id, TO);
  assert.deepEqual(written, { requestId: message.requestId, threadId, isNew: true });

  const identity = {
    requestId: message.requestId,
    accountId: account.id,
    threadId,
    to: TO,
    parts: [{ type: 'text', text: 'Hello' }],
  };
  const queued = await world.read(outbox);
  const { createdAt } = queued;
  assert.ok(createdAt instanceof Timestamp);
  assert.deepEqual(queued, {
    ...identity,
    status: 'queued',
    createdAt,
    createdBy: account.agent,
    nextAttemptAt: createdAt,
    attempts: 0,
  });
  assert.deepEqual(await world.read(shown), { ...identity, direction: 'outbound', status: 'queued', createdAt });
  const list = { accountId: account.id, to: TO, lastMessageAt: createdAt, lastMessageText: 'Hello' };
  assert.deepEqual(await world.read(thread), list);
});

test('a message to a known thread leaves the unread count alone', async (world) => {
  const { account, message, db, thread } = await agent(world);
  await world.put(thread, {
    accountId: account.id, to: TO, lastMessageAt: serverTimestamp(), lastMessageText: 'Hi?', unreadCount: 3,
  });
  await sendMessage(db, message);
  const { unreadCount, lastMessageText } = await world.read(thread);
  assert.deepEqual({ unreadCount, lastMessageText }, { unreadCount: 3, lastMessageText: 'Hello' });
});

test('parts of every type are stored as they were given', async (world) => {
  const { message, db, outbox, thread } = await agent(world);
  const parts = [
    { type: 'media', mediaId: 'm-1', mimeType: 'image/png', caption: 'The bill', filename: undefined },
    { type: 'template', name: 'reminder', language: 'en', params: ['Ada', ''] },
    { type: 'text', text: 'See you' },
  ];
  await sendMessage(db, { ...message, text: undefined, parts });
  const { filename, ...media } = parts[0];
  assert.deepEqual((await world.read(outbox)).parts, [media, parts[1], parts[2]]);
  assert.equal((await world.read(thread)).lastMessageText, 'The bill');
});

test('the longest text is taken by the rules, and the list shows of it what they take', async (world) => {
  const { message, db, outbox, thread } = await agent(world);
  const text = `x${'🙂'.repeat(2047)}y`;
  assert.equal(text.length, 4096);
  await sendMessage(db, { ...message, text });
  assert.equal((await world.read(outbox)).parts[0].text, text);
  assert.equal((await world.read(thread)).lastMessageText, `x${'🙂'.repeat(99)}`, 'no character is cut in half');
  const longer = sendMessage(db, { ...message, requestId: newRequestId(), text: `${text}!` });
  await assert.rejects(longer, refusedAs('invalid-message', /at most 4,096/));
});

test('the same message twice in a row is one message', async (world) => {
  const { message, db, outbox } = await agent(world);
  assert.equal((await sendMessage(db, message)).isNew, true);
  const before = await world.read(outbox);
  assert.equal((await sendMessage(db, message)).isNew, false);
  assert.deepEqual(await world.read(outbox), before);
});

test('a second call while the first is under way joins it', async (world) => {
  const { message, db, outbox } = await agent(world);
  const both = await Promise.all([sendMessage(db, message), sendMessage(db, { ...message })]);
  assert.deepEqual(both.map(({ isNew }) => isNew), [true, false]);
  assert.equal((await world.read(outbox)).status, 'queued');
});

test('two tabs that send the same message at once send it once', async (world) => {
  const { account, message } = await agent(world);
  const tabs = Array.from({ length: 4 }, () => world.client(account.agent));
  const written = await Promise.all(tabs.map((db) => sendMessage(db, message)));
  assert.equal(written.filter(({ isNew }) => isNew).length, 1);
});

test('a retry after the message went out succeeds and does not queue it again', async (world) => {
  const { account, message, db, shown, outbox } = await agent(world);
  await sendMessage(db, message);
  await world.change(outbox, { status: 'sent', attempts: 1 });
  await world.change(shown, { status: 'read' });
  assert.equal((await sendMessage(world.client(account.agent), message)).isNew, false);
  assert.equal((await world.read(outbox)).status, 'sent');
  assert.equal((await world.read(shown)).status, 'read');
});

test('another text with the same id is refused, and nothing changes', async (world) => {
  const { message, db, outbox, thread } = await agent(world);
  await sendMessage(db, message);
  await assert.rejects(sendMessage(db, { ...message, text: 'Bye' }), refusedAs('request-id-taken', /make a new one/));
  assert.equal((await world.read(outbox)).parts[0].text, 'Hello');
  assert.equal((await world.read(thread)).lastMessageText, 'Hello');
});

test('another recipient with the same id is refused, and nothing changes', async (world) => {
  const { account, message, db } = await agent(world);
  await sendMessage(db, message);
  const other = '+491700000000';
  await assert.rejects(sendMessage(db, { ...message, to: other }), refusedAs('request-id-taken'));
  assert.equal(await world.read(`threads/${threadIdOf(account.id, other)}`), undefined);
});

test('an id that another account has is refused as taken, and a new id is sent', async (world) => {
  const { message, db } = await agent(world);
  const stranger = await world.account();
  const theirs = { ...message, accountId: stranger.id, uid: stranger.owner };
  await sendMessage(world.client(stranger.owner), theirs);
  await assert.rejects(sendMessage(db, message), refusedAs('request-id-taken', /make a new one/));
  assert.equal((await sendMessage(db, { ...message, requestId: newRequestId() })).isNew, true);
});

test('a viewer with a free id and a signed-out user with a taken one are not allowed', async (world) => {
  const { account, message } = await agent(world);
  const viewers = { ...message, uid: account.viewer };
  await assert.rejects(sendMessage(world.client(account.viewer), viewers), refusedAs('not-allowed'));
  const stranger = await world.account();
  await sendMessage(world.client(stranger.owner), { ...message, accountId: stranger.id, uid: stranger.owner });
  await assert.rejects(sendMessage(world.client(null), message), refusedAs('not-allowed'));
});

test('another text with the id of a message under way is refused', async (world) => {
  const { message, db, outbox } = await agent(world);
  const first = sendMessage(db, message);
  await assert.rejects(sendMessage(db, { ...message, text: 'Bye' }), refusedAs('request-id-taken'));
  await first;
  assert.equal((await world.read(outbox)).parts[0].text, 'Hello');
});

test('what is sent offline waits, and is sent once when the device is online again', async (world) => {
  const { message, db, outbox } = await agent(world);
  await disableNetwork(db);
  let isOver = false;
  const twice = [sendMessage(db, message), sendMessage(db, message)];
  const all = Promise.all(twice).finally(() => (isOver = true));
  assert.equal(await world.read(outbox), undefined);
  assert.equal(isOver, false);
  await enableNetwork(db);
  assert.deepEqual((await all).map(({ isNew }) => isNew), [true, false]);
  assert.equal((await world.read(outbox)).status, 'queued');
});

test('what was sent offline on one device and online on another is one message', async (world) => {
  const { account, message, db, outbox } = await agent(world);
  await disableNetwork(db);
  const offline = sendMessage(db, message);
  await sendMessage(world.client(account.agent), message);
  const before = await world.read(outbox);
  await enableNetwork(db);
  assert.equal((await offline).isNew, false);
  assert.deepEqual(await world.read(outbox), before);
});

test('a viewer may not send', async (world) => {
  const { account, message, outbox } = await agent(world);
  const sending = sendMessage(world.client(account.viewer), { ...message, uid: account.viewer });
  await assert.rejects(sending, refusedAs('not-allowed', new RegExp(account.id)));
  assert.equal(await world.read(outbox), undefined);
});

test('a stranger may not send', async (world) => {
  const { message, outbox } = await agent(world);
  const sending = sendMessage(world.client('stranger'), { ...message, uid: 'stranger' });
  await assert.rejects(sending, refusedAs('not-allowed'));
  assert.equal(await world.read(outbox), undefined);
});

test('a user who is signed out may not send', async (world) => {
  const { message, outbox } = await agent(world);
  await assert.rejects(sendMessage(world.client(null), message), refusedAs('not-allowed'));
  assert.equal(await world.read(outbox), undefined);
});

test('no user sends in the name of another', async (world) => {
  const { account, message, db, outbox } = await agent(world);
  await assert.rejects(sendMessage(db, { ...message, uid: account.owner }), refusedAs('not-allowed'));
  assert.equal(await world.read(outbox), undefined);
});

test('a scheduled message waits for its time, and knows its deadline', async (world) => {
  const { message, db, outbox } = await agent(world);
  const at = new Date(Date.now() + 3_600_000);
  const sendBy = new Date(at.getTime() + 60_000);
  await scheduleMessage(db, { ...message, at, sendBy });
  const queued = await world.read(outbox);
  assert.deepEqual(queued.nextAttemptAt.toDate(), at);
  assert.deepEqual(queued.sendBy.toDate(), sendBy);
  assert.notDeepEqual(queued.createdAt, queued.nextAttemptAt);
});

test('a message of a year ahead is taken, a day later is refused', async (world) => {
  const { message, db } = await agent(world);
  const days = (count) => new Date(Date.now() + count * 86_400_000 - 60_000);
  await scheduleMessage(db, { ...message, at: days(365) });
  const later = scheduleMessage(db, { ...message, requestId: newRequestId(), at: days(366) });
  await assert.rejects(later, refusedAs('invalid-message', /365 days/));
});

test('a scheduled message whose time passes offline is refused, and says so', async (world) => {
  const { message, db, outbox } = await agent(world);
  await disableNetwork(db);
  const at = new Date(Date.now() + 100);
  const scheduled = scheduleMessage(db, { ...message, at });
  const refused = assert.rejects(scheduled, refusedAs('too-late', /ask for another/));
  await until('its time', () => Date.now() > at.getTime() + 10);
  await enableNetwork(db);
  await refused;
  assert.equal(await world.read(outbox), undefined);
});

test('a retry of a scheduled message after its time finds that it is there', async (world) => {
  const { message, db } = await agent(world);
  const [before, after] = [new Date(Date.now() + 60_000), new Date(Date.now() - 60_000)];
  assert.equal((await scheduleMessage(db, { ...message, at: before })).isNew, true);
  assert.equal((await scheduleMessage(db, { ...message, at: after })).isNew, false);
});

test('cancelling asks for it, and asking twice is as good', async (world) => {
  const { message, db, outbox } = await agent(world);
  await sendMessage(db, message);
  const before = await world.read(outbox);
  await cancel(db, message.requestId);
  await cancel(db, message.requestId);
  assert.deepEqual(await world.read(outbox), { ...before, cancelRequested: true });
});

test('what is cancelled offline is cancelled when the device is online again', async (world) => {
  const { message, db, outbox } = await agent(world);
  await disableNetwork(db);
  const work = [scheduleMessage(db, { ...message, at: new Date(Date.now() + 60_000) }), cancel(db, message.requestId)];
  await enableNetwork(db);
  await Promise.all(work);
  assert.equal((await world.read(outbox)).cancelRequested, true);
});

test('a viewer may not cancel', async (world) => {
  const { account, message, db, outbox } = await agent(world);
  await sendMessage(db, message);
  await assert.rejects(cancel(world.client(account.viewer), message.requestId), refusedAs('not-allowed'));
  assert.ok(!keys(await world.read(outbox)).includes('cancelRequested'));
});

test('cancelling what does not exist is refused in words', async (world) => {
  const { db } = await agent(world);
  await assert.rejects(cancel(db, newRequestId()), refusedAs('not-found', /there is no message/));
});

const world = new World(JSON.parse(process.env.WORLD));
await run(world);
await world.end();
