// Transactions of the SDK for browsers take no locks: they commit if nothing they read has changed, else begin again.

import assert from 'node:assert/strict';

import { doc, getDocs, runTransaction, setDoc } from 'firebase/firestore';

import { test } from '../../client/harness.mjs';
import { fill, ids, seenBy, stored } from './world.mjs';

test('a transaction reads, writes and gives a result', async (world) => {
  const collection = world.collection();
  await fill(collection, { a: { x: 1 }, gone: {} });
  const result = await runTransaction(world.db, async (transaction) => {
    const found = (await transaction.get(doc(collection, 'a'))).data().x;
    assert.equal((await transaction.get(doc(collection, 'log'))).exists(), false);
    transaction.update(doc(collection, 'a'), { x: found + 1 });
    transaction.set(doc(collection, 'log'), { was: found });
    transaction.delete(doc(collection, 'gone'));
    return found;
  });
  assert.equal(result, 1);
  assert.deepEqual((await getDocs(collection)).docs.map((one) => one.data()), [{ x: 2 }, { was: 1 }]);
});

test('a transaction begins again when what it read was changed by another', async (world) => {
  const document = world.document();
  await setDoc(document, { x: 0 });
  const another = seenBy(world.client(), document);
  let attempts = 0;
  await runTransaction(world.db, async (transaction) => {
    attempts += 1;
    const { x } = (await transaction.get(document)).data();
    if (attempts === 1) await setDoc(another, { x: 10 });
    transaction.update(document, { x: x + 1 });
  });
  assert.equal(attempts, 2);
  assert.deepEqual(await stored(document), { x: 11 });
});

test('a transaction begins again when what it missed was made by another', async (world) => {
  const document = world.document();
  const another = seenBy(world.client(), document);
  let attempts = 0;
  await runTransaction(world.db, async (transaction) => {
    attempts += 1;
    const found = await transaction.get(document);
    if (attempts === 1) await setDoc(another, { x: 10 });
    transaction.set(document, { x: (found.data()?.x ?? 0) + 1 });
  });
  assert.equal(attempts, 2);
  assert.deepEqual(await stored(document), { x: 11 });
});

test('a transaction reads a document that it does not write, and begins again when another changes it', async (world) => {
  const collection = world.collection();
  await fill(collection, { read: { x: 1 } });
  const another = seenBy(world.client(), doc(collection, 'read'));
  let attempts = 0;
  await runTransaction(world.db, async (transaction) => {
    attempts += 1;
    const { x } = (await transaction.get(doc(collection, 'read'))).data();
    assert.equal((await transaction.get(doc(collection, 'none'))).exists(), false);
    if (attempts === 1) await setDoc(another, { x: 10 });
    transaction.set(doc(collection, 'written'), { x });
  });
  assert.equal(attempts, 2);
  assert.deepEqual(await stored(doc(collection, 'written')), { x: 10 });
});

test('a transaction that loses every time gives up', async (world) => {
  const document = world.document();
  await setDoc(document, { x: 0 });
  const another = seenBy(world.client(), document);
  const losing = runTransaction(world.db, async (transaction) => {
    const { x } = (await transaction.get(document)).data();
    await setDoc(another, { x: x + 10 });
    transaction.update(document, { x: x + 1 });
  }, { maxAttempts: 2 });
  await assert.rejects(losing, ({ code }) => ['failed-precondition', 'aborted'].includes(code));
  assert.deepEqual(await stored(document), { x: 20 });
});

test('transactions of two clients that race are repeated until each has counted', async (world) => {
  const document = world.document();
  await setDoc(document, { x: 0 });
  const oneMore = (db) => runTransaction(db, async (transaction) => {
    const { x } = (await transaction.get(doc(db, document.path))).data();
    transaction.update(doc(db, document.path), { x: x + 1 });
  }, { maxAttempts: 20 });
  await Promise.all([world.db, world.db, world.client()].map(oneMore));
  assert.deepEqual(await stored(document), { x: 3 });
});

test('a transaction whose body throws writes nothing', async (world) => {
  const collection = world.collection();
  const failing = runTransaction(world.db, async (transaction) => {
    transaction.set(doc(collection, 'a'), { x: 1 });
    throw new Error('changed my mind');
  });
  await assert.rejects(failing, /changed my mind/);
  assert.equal(await ids(collection), '');
});
