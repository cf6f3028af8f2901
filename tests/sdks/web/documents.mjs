// One document, and batches of them: written in every way, and transformed by the server.

import assert from 'node:assert/strict';

import {
  FieldPath,
  Timestamp,
  addDoc,
  arrayRemove,
  arrayUnion,
  deleteDoc,
  deleteField,
  doc,
  getCountFromServer,
  getDoc,
  getDocFromServer,
  increment,
  serverTimestamp,
  setDoc,
  updateDoc,
  writeBatch,
} from 'firebase/firestore';

import { test } from '../../client/harness.mjs';
import { refused } from '../codes.mjs';
import { stored } from './world.mjs';

test('a document is set, read, changed and deleted', async (world) => {
  const document = world.document();
  assert.equal((await getDoc(document)).exists(), false);
  await setDoc(document, { x: 1 });
  assert.deepEqual(await stored(document), { x: 1 });
  await updateDoc(document, { y: 2 });
  const snapshot = await getDocFromServer(document);
  assert.deepEqual([snapshot.id, snapshot.data(), snapshot.metadata.fromCache], ['a', { x: 1, y: 2 }, false]);
  await deleteDoc(document);
  assert.equal((await getDoc(document)).exists(), false);
});

test('a document that does not exist cannot be updated', async (world) => {
  const document = world.document();
  await refused('NOT_FOUND', updateDoc(document, { x: 1 }));
  assert.equal((await getDoc(document)).exists(), false);
});

test('a document added to a collection gets an id', async (world) => {
  const added = await addDoc(world.collection(), { x: 1 });
  assert.match(added.id, /^[A-Za-z0-9]{20}$/);
  assert.deepEqual(await stored(added), { x: 1 });
});

test('setting replaces all fields; merging only those given', async (world) => {
  const document = world.document();
  await setDoc(document, { old: 1 });
  await setDoc(document, { a: 1, map: { k: 1, l: 1 }, list: [1, 2] });
  await setDoc(document, { map: { k: 2 }, list: [3] }, { merge: true });
  assert.deepEqual(await stored(document), { a: 1, map: { k: 2, l: 1 }, list: [3] });
  await setDoc(document, { a: 9, map: { k: 9, l: 9 } }, { mergeFields: ['map.l'] });
  assert.deepEqual(await stored(document), { a: 1, map: { k: 2, l: 9 }, list: [3] });
});

test('an update reaches into maps and removes fields', async (world) => {
  const document = world.document();
  await setDoc(document, { map: { k: 1, l: 1, 'a.b': 1 }, gone: 1 });
  await updateDoc(document, { 'map.k': 2, 'map.l': deleteField(), gone: deleteField(), 'new.deep': 3 });
  await updateDoc(document, new FieldPath('map', 'a.b'), 4);
  assert.deepEqual(await stored(document), { map: { k: 2, 'a.b': 4 }, new: { deep: 3 } });
});

test('a server timestamp is the time of the commit, the same in each field', async (world) => {
  const document = world.document();
  await setDoc(document, { at: serverTimestamp(), map: { at: serverTimestamp() } });
  const { at, map } = await stored(document);
  assert.ok(at.isEqual(map.at));
  assert.ok(Math.abs(at.toMillis() - Timestamp.now().toMillis()) < 60_000);
});

test('increments and array transforms are done by the server', async (world) => {
  const document = world.document();
  await setDoc(document, { n: 1, text: 'x', list: [1, 2, 1] });
  await updateDoc(document, { n: increment(1.5), text: increment(3), fresh: increment(-4), list: arrayUnion(2, 3) });
  assert.deepEqual(await stored(document), { n: 2.5, text: 3, fresh: -4, list: [1, 2, 1, 3] });
  await updateDoc(document, { list: arrayRemove(1), none: arrayRemove(1) });
  assert.deepEqual(await stored(document), { n: 2.5, text: 3, fresh: -4, list: [2, 3], none: [] });
});

test('increments of two clients are all counted', async (world) => {
  const document = world.document();
  const others = doc(world.client(), document.path);
  const one = (_, number) => setDoc(number % 2 ? document : others, { n: increment(1) }, { merge: true });
  await Promise.all(Array.from({ length: 20 }, one));
  assert.deepEqual(await stored(document), { n: 20 });
});

test('a batch of 500 is written', async (world) => {
  const collection = world.collection();
  const batch = writeBatch(world.db);
  for (let number = 0; number < 500; number += 1) batch.set(doc(collection, `d${number}`), { number });
  await batch.commit();
  assert.equal((await getCountFromServer(collection)).data().count, 500);
});

test('a batch with one write that fails writes nothing', async (world) => {
  const collection = world.collection();
  const batch = writeBatch(world.db);
  batch.set(doc(collection, 'a'), { x: 1 });
  batch.update(doc(collection, 'none'), { x: 1 });
  await refused('NOT_FOUND', batch.commit());
  assert.equal((await getCountFromServer(collection)).data().count, 0);
});

test('writes arrive in the order in which they were made', async (world) => {
  const document = world.document();
  const writes = [setDoc(document, { list: [] })];
  for (let number = 0; number < 50; number += 1) writes.push(updateDoc(document, { list: arrayUnion(number) }));
  await Promise.all(writes);
  assert.deepEqual((await stored(document)).list, Array.from({ length: 50 }, (_, number) => number));
});

test('what is written after a refused write still arrives', async (world) => {
  const collection = world.collection();
  const refusal = refused('NOT_FOUND', updateDoc(doc(collection, 'none'), { x: 1 }));
  const after = setDoc(doc(collection, 'a'), { x: 1 });
  await Promise.all([refusal, after]);
  assert.deepEqual(await stored(doc(collection, 'a')), { x: 1 });
});
