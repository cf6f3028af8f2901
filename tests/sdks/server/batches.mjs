// Many writes at once: atomic in a batch, each for itself in a BulkWriter.

import assert from 'node:assert/strict';

import { test } from '../../client/harness.mjs';
import { CODES, refused } from '../codes.mjs';
import { fill, ids } from './world.mjs';

const size = async (query) => (await query.count().get()).data().count;

test('a batch of 500 is written at one moment', async (world) => {
  const collection = world.collection();
  const batch = world.db.batch();
  for (let number = 0; number < 500; number += 1) batch.set(collection.doc(`d${number}`), { number });
  const results = await batch.commit();
  assert.equal(results.length, 500);
  assert.ok(results.every(({ writeTime }) => writeTime.isEqual(results[0].writeTime)));
  assert.equal(await size(collection), 500);
});

test('a batch with one write that fails writes nothing', async (world) => {
  const collection = world.collection();
  const batch = world.db.batch();
  batch.set(collection.doc('a'), { x: 1 });
  batch.update(collection.doc('none'), { x: 1 });
  await refused('NOT_FOUND', batch.commit());
  assert.equal(await size(collection), 0);
});

test('the writes of a batch to one document follow each other', async (world) => {
  const { FieldValue } = world.sdk;
  const document = world.document();
  const batch = world.db.batch();
  batch.create(document, { n: 1 });
  batch.update(document, { n: FieldValue.increment(1) });
  batch.set(document, { m: 1 }, { merge: true });
  await batch.commit();
  assert.deepEqual((await document.get()).data(), { n: 2, m: 1 });
});

test('a BulkWriter writes much, and tells of each write', async (world) => {
  const collection = world.collection();
  const writer = world.db.bulkWriter();
  const told = [];
  writer.onWriteResult((reference, result) => told.push([reference.id, result.writeTime.seconds > 0]));
  const writes = Array.from({ length: 300 }, (_, number) => writer.set(collection.doc(`d${number}`), { number }));
  await writer.close();
  await Promise.all(writes);
  assert.equal(told.length, 300);
  assert.ok(told.every(([, hasTime]) => hasTime));
  assert.equal(await size(collection), 300);
});

test('a BulkWriter writes the others when one fails, and asks whether to try that again', async (world) => {
  const collection = world.collection();
  await collection.doc('taken').set({ x: 0 });
  const writer = world.db.bulkWriter();
  const failures = [];
  writer.onWriteError((error) => {
    failures.push([error.documentRef.id, error.code, error.operationType]);
    return error.failedAttempts < 2;
  });
  const taken = refused('ALREADY_EXISTS', writer.create(collection.doc('taken'), { x: 1 }));
  writer.create(collection.doc('free'), { x: 1 });
  writer.delete(collection.doc('none'));
  await writer.close();
  await taken;
  const failure = ['taken', CODES.ALREADY_EXISTS, 'create'];
  assert.deepEqual(failures, [failure, failure]);
  assert.deepEqual((await collection.doc('taken').get()).data(), { x: 0 });
  assert.equal(await ids(collection), 'free taken');
});

test('a recursive delete takes a document and all below it, and nothing beside it', async (world) => {
  const collection = world.collection();
  await fill(collection, { a: {}, aa: {}, b: {} });
  await fill(collection.doc('a').collection('s'), { 1: {}, 2: {} });
  await fill(collection.doc('a').collection('s').doc('none').collection('t'), { 3: {} });
  await fill(collection.doc('aa').collection('s'), { 4: {} });
  await world.db.recursiveDelete(collection.doc('a'));
  assert.equal(await ids(collection), 'aa b');
  assert.equal(await ids(collection.doc('aa').collection('s')), '4');
  assert.deepEqual(await collection.doc('a').listCollections(), []);
});

test('a recursive delete takes a collection with all below it', async (world) => {
  const collection = world.collection();
  await fill(collection, { a: {}, b: {} });
  await fill(collection.doc('none').collection('s'), { 1: {} });
  await world.db.recursiveDelete(collection);
  assert.deepEqual(await collection.listDocuments(), []);
});
