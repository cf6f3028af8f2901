// client/notifications.js with the real SDK: devices that members register and remove, and what the watch tells.

import assert from 'node:assert/strict';

import { Timestamp } from 'firebase/firestore';

import { OutboxError, registerDevice, removeDevice, watchNotifications } from '../../client/outbox.js';
import { Seen, run, test } from './harness.mjs';
import { World } from './world.mjs';

const fail = (error) => {
  throw error;
};

test('a device is one document of its member, and is registered once', async (world) => {
  const account = await world.account();
  const db = world.client(account.agent);
  const device = { accountId: account.id, uid: account.agent, token: 'token-1' };
  const { deviceId, isNew } = await registerDevice(db, { ...device, platform: 'web' });
  assert.equal(isNew, true);
  assert.deepEqual(await registerDevice(db, device), { deviceId, isNew: false });
  const { createdAt, ...stored } = await world.read(`accounts/${account.id}/devices/${deviceId}`);
  assert.ok(createdAt instanceof Timestamp);
  assert.deepEqual(stored, { uid: account.agent, token: 'token-1', platform: 'web' });
});

test('a device is removed, and a second time changes nothing', async (world) => {
  const account = await world.account();
  const db = world.client(account.agent);
  const device = { accountId: account.id, uid: account.agent, token: 'token-2' };
  const { deviceId } = await registerDevice(db, device);
  await removeDevice(db, device);
  await removeDevice(db, device);
  assert.equal(await world.read(`accounts/${account.id}/devices/${deviceId}`), undefined);
});

test('a device of an account that is not the users is refused', async (world) => {
  const [account, other] = [await world.account(), await world.account()];
  const device = { accountId: other.id, uid: account.agent, token: 'token-3' };
  await assert.rejects(registerDevice(world.client(account.agent), device), (error) => {
    assert.ok(error instanceof OutboxError, `${error}`);
    assert.equal(error.code, 'not-allowed');
    return true;
  });
});

test('a token that cannot be is refused in words', async (world) => {
  const account = await world.account();
  const device = { accountId: account.id, uid: account.agent, token: '' };
  await assert.rejects(registerDevice(world.client(account.agent), device), /token/);
});

test('members watch the notifications of their account, the newest first', async (world) => {
  const account = await world.account();
  const told = { kind: 'run.ended', runId: 'r', status: 'partial', text: 'Closed.', sent: 412, total: 1000, state: 'waiting' };
  const path = `accounts/${account.id}/notifications`;
  await world.put(`${path}/first`, { ...told, title: '412 of 1000 delivered', createdAt: Timestamp.fromMillis(1000) });
  const seen = new Seen();
  const stop = watchNotifications(world.client(account.agent), account.id, seen.add, { onError: fail });
  await seen.until('the first', (list) => list.length === 1);
  await world.put(`${path}/second`, { ...told, title: '1 of 1 delivered', createdAt: Timestamp.fromMillis(2000) });
  const [newest, before] = await seen.until('both', (list) => list.length === 2);
  assert.deepEqual([newest.id, before.title, before.reminderId], ['second', '412 of 1000 delivered', null]);
  stop();
});

const world = new World(JSON.parse(process.env.WORLD));
await run(world);
await world.end();
