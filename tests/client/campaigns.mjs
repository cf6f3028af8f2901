// client/campaigns.js with the real SDK: reminders and requests, each written once, and what the watches tell of runs.

import assert from 'node:assert/strict';

import { Timestamp, disableNetwork, enableNetwork, serverTimestamp } from 'firebase/firestore';

import {
  OutboxError,
  addReminder,
  askReminder,
  askRun,
  editReminder,
  listRuns,
  newRequestId,
  watchReminder,
  watchRequest,
  watchRun,
} from '../../client/outbox.js';
import { Seen, run, test } from './harness.mjs';
import { World } from './world.mjs';

const AT = new Date('2031-01-31T09:00:00Z');
const fail = (error) => {
  throw error;
};

async function agent(world) {
  const account = await world.account();
  const reminder = {
    reminderId: newRequestId(),
    accountId: account.id,
    uid: account.agent,
    text: 'Good morning',
    targets: ['1@g.us', { id: 'vip', to: '2@g.us' }],
    timezone: 'Asia/Kuala_Lumpur',
    window: { startHour: 6, endHour: 18 },
    schedule: { type: 'once', at: AT },
  };
  return { account, reminder, db: world.client(account.agent), path: `reminders/${reminder.reminderId}` };
}

async function aRun(world, account, fields = {}) {
  const id = `run-${newRequestId()}`;
  const base = { accountId: account.id, status: 'running', total: 3, fireAt: Timestamp.now(), createdAt: serverTimestamp() };
  await world.put(`runs/${id}`, { ...base, ...fields });
  return id;
}

function refusedAs(code, words = /./) {
  return (error) => {
    assert.ok(error instanceof OutboxError, `${error}`);
    assert.equal(error.code, code, error.message);
    assert.match(error.message, words);
    return true;
  };
}

test('a reminder is one document with the fields of the contract, and is written once', async (world) => {
  const { account, reminder, db, path } = await agent(world);
  assert.deepEqual(await addReminder(db, reminder), { reminderId: reminder.reminderId, isNew: true });
  const { createdAt, ...stored } = await world.read(path);
  assert.ok(createdAt instanceof Timestamp);
  assert.deepEqual(stored, {
    accountId: account.id,
    parts: [{ type: 'text', text: 'Good morning' }],
    targets: reminder.targets,
    timezone: 'Asia/Kuala_Lumpur',
    window: { startHour: 6, endHour: 18 },
    schedule: { type: 'once', at: Timestamp.fromDate(AT) },
    status: 'active',
    createdBy: account.agent,
  });
  assert.equal((await addReminder(db, reminder)).isNew, false);
  await assert.rejects(addReminder(db, { ...reminder, text: 'Good evening' }), refusedAs('request-id-taken'));
});

test('a reminder that was added offline is stored when there is a connection', async (world) => {
  const { reminder, db, path } = await agent(world);
  const seen = new Seen();
  const stop = watchReminder(db, reminder.reminderId, seen.add, fail);
  await disableNetwork(db);
  const added = addReminder(db, reminder);
  await seen.until('shown at once', (value) => value?.isPending);
  assert.equal(await world.read(path), undefined);
  await enableNetwork(db);
  assert.equal((await added).isNew, true);
  await world.change(path, { problem: 'timezone must be a time zone such as Europe/Berlin.' });
  assert.match((await seen.until('a problem', (value) => value?.problem)).problem, /time zone/);
  stop();
});

test('delivery hours and targets that cannot be are refused in words', async (world) => {
  const { reminder, db } = await agent(world);
  const cases = [
    [{ window: { startHour: 9, endHour: 9 } }, /startHour and endHour are the same; for the whole day use 0 and 24/],
    [{ window: { startHour: 24, endHour: 6 } }, /window.startHour must be a whole hour from 0 to 23/],
    [{ window: { startHour: 6, endHour: 25 } }, /window.endHour must be a whole hour from 1 to 24/],
    [{ window: { startHour: 6.5, endHour: 18 } }, /window.startHour must be a whole hour/],
    [{ targets: [] }, /targets is empty/],
    [{ targets: Array(5001).fill('1@g.us') }, /targets has 5,001 entries/],
    [{ schedule: { type: 'never' } }, /schedule.type must be once, cron or rrule/],
    [{ schedule: undefined }, /schedule is missing/],
    [{ color: 'red' }, /color is unknown/],
  ];
  for (const [change, words] of cases) {
    await assert.rejects(addReminder(db, { ...reminder, ...change }), refusedAs('invalid-message', words));
  }
});

test('what a member asks is written once and its outcome is watched', async (world) => {
  const { account, db } = await agent(world);
  const runId = await aRun(world, account);
  const requestId = newRequestId();
  const asked = { requestId, uid: account.owner, action: 'pause' };
  const owner = world.client(account.owner);
  assert.deepEqual(await askRun(owner, runId, asked), { requestId, isNew: true });
  assert.equal((await askRun(owner, runId, asked)).isNew, false);
  const { action, createdBy, askedAt } = await world.read(`runs/${runId}/requests/${requestId}`);
  assert.deepEqual({ action, createdBy }, { action: 'pause', createdBy: account.owner });
  assert.ok(askedAt instanceof Timestamp);
  const seen = new Seen();
  const stop = watchRequest(owner, { runId, requestId }, seen.add, fail);
  await seen.until('no outcome', (value) => value && value.outcome === null);
  await world.change(`runs/${runId}/requests/${requestId}`, { outcome: 'refused', outcomeReason: 'the run has ended' });
  const told = await seen.until('refused', (value) => value?.outcome);
  assert.deepEqual(told, { action: 'pause', outcome: 'refused', reason: 'the run has ended' });
  stop();
  await assert.rejects(askRun(db, runId, { requestId: newRequestId(), uid: account.agent, action: 'cancel' }), refusedAs('not-allowed'));
});

test('a reminder is edited and removed by requests', async (world) => {
  const { account, reminder, db, path } = await agent(world);
  await addReminder(db, reminder);
  const edit = { requestId: newRequestId(), uid: account.agent, changes: { window: { startHour: 0, endHour: 24 } } };
  await editReminder(db, reminder.reminderId, edit);
  const { action, changes } = await world.read(`${path}/requests/${edit.requestId}`);
  assert.deepEqual({ action, changes }, { action: 'edit', changes: edit.changes });
  const remove = { requestId: newRequestId(), uid: account.agent, action: 'remove' };
  assert.equal((await askReminder(db, reminder.reminderId, remove)).isNew, true);
});

test('a run is watched from its start to its end, and found among the latest', async (world) => {
  const { account, db } = await agent(world);
  const first = await aRun(world, account, { status: 'success' });
  const runId = await aRun(world, account);
  const seen = new Seen();
  const stop = watchRun(db, runId, seen.add, fail);
  await seen.until('running', (value) => value?.status === 'running');
  const progress = { counts: { total: 3, sent: 1, pending: 2 }, waitsFor: ['2 of 3 messages wait.'], overlaps: ['other'], reasons: {} };
  await world.change(`runs/${runId}`, { ...progress, countedAt: Timestamp.now() });
  const middle = await seen.until('its progress', (run) => run?.counts?.sent === 1);
  assert.deepEqual([middle.waitsFor, middle.overlaps], [progress.waitsFor, progress.overlaps]);
  assert.ok(middle.countedAt instanceof Date);

  const counts = { total: 3, sent: 2, failed: 1 };
  await world.change(`runs/${runId}`, { status: 'partial', counts, errorSummary: '2 of 3 groups delivered.', finishedAt: Timestamp.now() });
  const end = await seen.until('the end', (value) => value?.status === 'partial');
  assert.deepEqual([end.counts, end.errorSummary], [counts, '2 of 3 groups delivered.']);
  assert.ok(end.finishedAt instanceof Date);
  stop();
  const found = await listRuns(db, account.id);
  assert.deepEqual(found.map(({ id }) => id), [runId, first]);
  const stranger = world.client('stranger');
  await assert.rejects(listRuns(stranger, account.id));
});

const world = new World(JSON.parse(process.env.WORLD));
await run(world);
await world.end();
