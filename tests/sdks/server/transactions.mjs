// Transactions: atomic, repeated when they lose a race, and reading one moment.

import assert from 'node:assert/strict';

import { test } from '../../client/harness.mjs';
import { refused } from '../codes.mjs';
import { fill, ids } from './world.mjs';

test('a transaction reads, writes and gives a result', async (world) => {
  const document = world.document();
  await document.set({ x: 1 });
  const result = await world.db.runTransaction(async (transaction) => {
    const found = (await transaction.get(document)).get('x');
    transaction.update(document, { x: found + 1 });
    transaction.create(document.parent.doc('log'), { was: found });
    return found;
  });
  assert.equal(result, 1);
  assert.equal((await document.get()).get('x'), 2);
  assert.equal((await document.parent.doc('log').get()).get('was'), 1);
});

test('a transaction whose body throws writes nothing', async (world) => {
  const document = world.document();
  const failing = world.db.runTransaction(async (transaction) => {
    await transaction.get(document);
    transaction.set(document, { x: 1 });
    throw new Error('changed my mind');
  });
  await assert.rejects(failing, /changed my mind/);
  assert.equal((await document.get()).exists, false);
});

test('a transaction with a write that fails writes nothing', async (world) => {
  const collection = world.collection();
  await collection.doc('taken').set({ x: 0 });
  const failing = world.db.runTransaction(async (transaction) => {
    transaction.set(collection.doc('other'), { x: 1 });
    transaction.create(collection.doc('taken'), { x: 1 });
  });
  await refused('ALREADY_EXISTS', failing);
  assert.equal(await ids(collection), 'taken');
});

test('transactions that race for one document are repeated until each has counted', async (world) => {
  const document = world.document();
  await document.set({ x: 0 });
  const oneMore = () => world.db.runTransaction(async (transaction) => {
    const found = (await transaction.get(document)).get('x');
    transaction.update(document, { x: found + 1 });
  }, { maxAttempts: 20 });
  await Promise.all([oneMore(), oneMore(), oneMore()]);
  assert.equal((await document.get()).get('x'), 3);
});

test('a transaction reads queries, many documents and sums', async (world) => {
  const collection = world.collection();
  await fill(collection, { a: { x: 1 }, b: { x: 2 }, c: { x: 3 } });
  await world.db.runTransaction(async (transaction) => {
    const found = await transaction.get(collection.where('x', '>', 1));
    const all = await transaction.getAll(collection.doc('a'), collection.doc('none'));
    const count = await transaction.get(collection.count());
    const seen = [found.size, all.map(({ exists }) => exists), count.data().count];
    transaction.set(collection.doc('seen'), { seen: JSON.stringify(seen) });
  });
  assert.equal((await collection.doc('seen').get()).get('seen'), '[2,[true,false],3]');
});

test('a transaction reads before it writes, or says so', async (world) => {
  const document = world.document();
  const late = world.db.runTransaction(async (transaction) => {
    transaction.set(document, { x: 1 });
    await transaction.get(document);
  });
  await assert.rejects(late, /all reads to be executed before all writes/);
});

test('a read-only transaction reads one moment, whatever is written meanwhile', async (world) => {
  const collection = world.collection();
  await fill(collection, { a: { x: 1 }, b: { x: 1 } });
  const seen = await world.db.runTransaction(async (transaction) => {
    const first = (await transaction.get(collection.doc('a'))).get('x');
    await fill(collection, { a: { x: 2 }, b: { x: 2 }, c: { x: 2 } });
    const rest = await transaction.get(collection);
    return [first, ...rest.docs.map((document) => document.get('x'))];
  }, { readOnly: true });
  assert.deepEqual(seen, [1, 1, 1]);
});

test('a read-only transaction reads the past', async (world) => {
  const document = world.document();
  const { writeTime: readTime } = await document.set({ x: 1 });
  await document.set({ x: 2 });
  const read = async (transaction) => (await transaction.get(document)).get('x');
  assert.equal(await world.db.runTransaction(read, { readOnly: true, readTime }), 1);
});

test('a read-only transaction cannot write', async (world) => {
  const document = world.document();
  const write = async (transaction) => transaction.set(document, { x: 1 });
  await assert.rejects(world.db.runTransaction(write, { readOnly: true }), /read-only/);
  assert.equal((await document.get()).exists, false);
});
