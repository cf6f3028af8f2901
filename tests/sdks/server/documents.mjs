// One document: written in every way, transformed, and guarded by preconditions.

import assert from 'node:assert/strict';

import { test } from '../../client/harness.mjs';
import { refused } from '../codes.mjs';

const data = async (document) => (await document.get()).data();

test('a document is set, read, changed and deleted', async (world) => {
  const document = world.document();
  assert.equal((await document.get()).exists, false);
  const { writeTime } = await document.set({ x: 1 });
  const snapshot = await document.get();
  assert.deepEqual([snapshot.exists, snapshot.id, snapshot.data()], [true, 'a', { x: 1 }]);
  assert.ok(snapshot.createTime.isEqual(writeTime));
  assert.ok(snapshot.updateTime.isEqual(writeTime));
  await document.update({ y: 2 });
  const changed = await document.get();
  assert.deepEqual(changed.data(), { x: 1, y: 2 });
  assert.ok(changed.createTime.isEqual(writeTime));
  assert.ok(changed.updateTime > writeTime);
  await document.delete();
  assert.equal((await document.get()).exists, false);
});

test('a document that exists cannot be created, and one that does not cannot be updated', async (world) => {
  const document = world.document();
  await refused('NOT_FOUND', document.update({ x: 1 }));
  await document.create({ x: 1 });
  await refused('ALREADY_EXISTS', document.create({ x: 2 }));
  assert.deepEqual(await data(document), { x: 1 });
});

test('a document added to a collection gets an id', async (world) => {
  const added = await world.collection().add({ x: 1 });
  assert.match(added.id, /^[A-Za-z0-9]{20}$/);
  assert.deepEqual(await data(added), { x: 1 });
});

test('setting replaces all fields; merging only those given', async (world) => {
  const document = world.document();
  await document.set({ old: 1 });
  await document.set({ a: 1, map: { k: 1, l: 1 }, list: [1, 2] });
  await document.set({ map: { k: 2 }, list: [3] }, { merge: true });
  assert.deepEqual(await data(document), { a: 1, map: { k: 2, l: 1 }, list: [3] });
  await document.set({ a: 9, map: { k: 9, l: 9 } }, { mergeFields: ['map.l'] });
  assert.deepEqual(await data(document), { a: 1, map: { k: 2, l: 9 }, list: [3] });
});

test('merging makes a document that was not there', async (world) => {
  const document = world.document();
  await document.set({ a: { b: 1 } }, { merge: true });
  assert.deepEqual(await data(document), { a: { b: 1 } });
});

test('an update reaches into maps and removes fields', async (world) => {
  const { FieldPath, FieldValue } = world.sdk;
  const document = world.document();
  await document.set({ map: { k: 1, l: 1, 'a.b': 1 }, gone: 1 });
  await document.update({ 'map.k': 2, 'map.l': FieldValue.delete(), gone: FieldValue.delete(), 'new.deep': 3 });
  await document.update(new FieldPath('map', 'a.b'), 4);
  assert.deepEqual(await data(document), { map: { k: 2, 'a.b': 4 }, new: { deep: 3 } });
});

test('a server timestamp is the time of the commit, the same in each field', async (world) => {
  const { FieldValue } = world.sdk;
  const document = world.document();
  const now = FieldValue.serverTimestamp();
  const { writeTime } = await document.set({ at: now, map: { at: now } });
  const found = await data(document);
  assert.ok(found.at.isEqual(found.map.at));
  assert.ok(Math.abs(found.at.toMillis() - writeTime.toMillis()) < 1000, `${found.at.toMillis()}`);
});

test('increments add up, starting from nothing and from what is no number', async (world) => {
  const { FieldValue } = world.sdk;
  const document = world.document();
  await document.set({ n: 1, text: 'x' });
  for (const by of [2, 0.5, -1]) await document.update({ n: FieldValue.increment(by) });
  await document.update({ text: FieldValue.increment(3), fresh: FieldValue.increment(-4) });
  assert.deepEqual(await data(document), { n: 2.5, text: 3, fresh: -4 });
});

test('concurrent increments are all counted', async (world) => {
  const { FieldValue } = world.sdk;
  const document = world.document();
  const one = () => document.set({ n: FieldValue.increment(1) }, { merge: true });
  await Promise.all(Array.from({ length: 20 }, one));
  assert.deepEqual(await data(document), { n: 20 });
});

test('array union adds what is missing, and array remove takes out every equal element', async (world) => {
  const { FieldValue } = world.sdk;
  const document = world.document();
  await document.set({ list: [1, 2, 1, { k: 1 }], text: 'x' });
  await document.update({ list: FieldValue.arrayUnion(2, 3, 3, { k: 1 }), text: FieldValue.arrayUnion('a') });
  assert.deepEqual(await data(document), { list: [1, 2, 1, { k: 1 }, 3], text: ['a'] });
  await document.update({ list: FieldValue.arrayRemove(1, { k: 1 }), none: FieldValue.arrayRemove(1) });
  assert.deepEqual(await data(document), { list: [2, 3], text: ['a'], none: [] });
});

test('a write that expects an older state is refused', async (world) => {
  const document = world.document();
  const first = await document.set({ x: 1 });
  await document.update({ x: 2 }, { lastUpdateTime: first.writeTime });
  await refused('FAILED_PRECONDITION', document.update({ x: 3 }, { lastUpdateTime: first.writeTime }));
  await refused('FAILED_PRECONDITION', document.delete({ lastUpdateTime: first.writeTime }));
  assert.deepEqual(await data(document), { x: 2 });
});

test('deleting what is not there is fine, unless it was to exist', async (world) => {
  const document = world.document();
  await document.delete();
  await refused('NOT_FOUND', document.delete({ exists: true }));
});
