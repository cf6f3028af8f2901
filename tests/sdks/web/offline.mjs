// Without the network, and with it again.

import assert from 'node:assert/strict';

import {
  deleteDoc,
  disableNetwork,
  doc,
  enableNetwork,
  getDoc,
  getDocFromCache,
  getDocFromServer,
  increment,
  onSnapshot,
  orderBy,
  query,
  setDoc,
  terminate,
  updateDoc,
  waitForPendingWrites,
} from 'firebase/firestore';

import { test } from '../../client/harness.mjs';
import { fill, is, seenBy, stored, watched } from './world.mjs';

const view = (snapshot) => snapshot.docs.map((document) => `${document.id}:${document.get('x')}`).join(' ');
const nothing = async () => {};

test('what is written offline is shown at once, and arrives when the network is back', async (world) => {
  const db = world.client();
  const document = world.document(db);
  const outside = seenBy(world.db, document);
  await disableNetwork(db);
  let isStored = false;
  const writing = setDoc(document, { x: 1 }).then(() => (isStored = true));
  const snapshot = await getDocFromCache(document);
  assert.deepEqual([snapshot.data(), snapshot.metadata.hasPendingWrites], [{ x: 1 }, true]);
  assert.equal(await stored(outside), undefined);
  assert.equal(isStored, false);
  await enableNetwork(db);
  await writing;
  assert.deepEqual(await stored(outside), { x: 1 });
});

test('what was written offline arrives in its order and once', async (world) => {
  const db = world.client();
  const document = world.document(db);
  await setDoc(document, { n: 0, steps: [] });
  await disableNetwork(db);
  const writes = [1, 2, 3].map((by) => updateDoc(document, { n: increment(by), last: by }));
  await enableNetwork(db);
  await Promise.all(writes);
  const { n, last } = await stored(document);
  assert.deepEqual([n, last], [6, 3]);
});

test('a listener sees what happened while it was offline', async (world) => {
  const db = world.client();
  const collection = world.collection(db);
  const outside = seenBy(world.db, collection);
  await fill(outside, { a: { x: 1 }, b: { x: 2 } });
  const { seen, stop } = watched(query(collection, orderBy('x')), view);
  await seen.until('both', is('a:1 b:2'));
  await disableNetwork(db);
  await deleteDoc(doc(outside, 'a'));
  await updateDoc(doc(outside, 'b'), { x: 5 });
  await setDoc(doc(outside, 'c'), { x: 3 });
  assert.deepEqual(seen.values, ['a:1 b:2']);
  await enableNetwork(db);
  await seen.until('what is there now', is('c:3 b:5'));
  stop();
});

test('a listener says that it shows the cache while it is offline', async (world) => {
  const db = world.client();
  const document = world.document(db);
  await setDoc(document, { x: 1 });
  const tell = ({ metadata }) => metadata.fromCache;
  const { seen, stop } = watched(document, tell, { includeMetadataChanges: true });
  await seen.until('from the server', is(false));
  await disableNetwork(db);
  await seen.until('from the cache', () => seen.values.at(-1) === true);
  await enableNetwork(db);
  await seen.until('from the server again', () => seen.values.at(-1) === false);
  stop();
});

test('pending writes can be waited for', async (world) => {
  const db = world.client();
  const collection = world.collection(db);
  for (const id of ['a', 'b', 'c']) setDoc(doc(collection, id), { x: 1 });
  await waitForPendingWrites(db);
  for (const id of ['a', 'b', 'c']) assert.deepEqual(await stored(doc(world.db, collection.path, id)), { x: 1 });
});

test('what is only at the server cannot be read offline', async (world) => {
  const db = world.client();
  const document = world.document(db);
  await setDoc(seenBy(world.db, document), { x: 1 });
  await disableNetwork(db);
  await assert.rejects(getDocFromServer(document), { code: 'unavailable' });
  await assert.rejects(getDocFromCache(document), { code: 'unavailable' });
  await enableNetwork(db);
  assert.deepEqual((await getDoc(document)).data(), { x: 1 });
});

test('a terminated client is of no use, and another takes its place', async (world) => {
  const db = world.client();
  const document = world.document(db);
  await setDoc(document, { x: 1 });
  onSnapshot(document, nothing);
  await terminate(db);
  assert.throws(() => getDoc(document), { code: 'failed-precondition' });
  assert.deepEqual(await stored(seenBy(world.client(), document)), { x: 1 });
});
