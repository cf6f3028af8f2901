// What is there: many documents at once, listings, sums, partitions, and what a query did.

import assert from 'node:assert/strict';

import { test } from '../../client/harness.mjs';
import { refused } from '../codes.mjs';
import { fill } from './world.mjs';

test('many documents are read at once, in the order asked for', async (world) => {
  const collection = world.collection();
  await fill(collection, { a: { x: 1, y: 1 }, b: { x: 2, y: 2 } });
  const wanted = ['b', 'none', 'a'].map((id) => collection.doc(id));
  const found = await world.db.getAll(...wanted);
  assert.deepEqual(found.map(({ id }) => id), ['b', 'none', 'a']);
  assert.deepEqual(found.map((one) => one.data()), [{ x: 2, y: 2 }, undefined, { x: 1, y: 1 }]);
  const masked = await world.db.getAll(...wanted, { fieldMask: ['y'] });
  assert.deepEqual(masked.map((one) => one.data()), [{ y: 2 }, undefined, { y: 1 }]);
});

test('a listing shows documents that are missing but have something below them', async (world) => {
  const collection = world.collection();
  await fill(collection, { a: {}, c: {} });
  await collection.doc('b/s/1').set({});
  await collection.doc('c').delete();
  const listed = await collection.listDocuments();
  assert.deepEqual(listed.map(({ id }) => id), ['a', 'b']);
});

test('a listing of more than a page is complete', async (world) => {
  const collection = world.collection();
  const numbers = Array.from({ length: 450 }, (_, number) => [`d${number}`, {}]);
  await fill(collection, Object.fromEntries(numbers));
  assert.equal((await collection.listDocuments()).length, 450);
});

test('collections are listed, at the root and below a document', async (world) => {
  const db = world.emptyDatabase();
  await fill(db.collection('b'), { 1: {} });
  await fill(db.collection('a'), { 1: {} });
  await fill(db.collection('a/1/y'), { 1: {} });
  await fill(db.collection('a/none/z'), { 1: {} });
  const names = async (place) => (await place.listCollections()).map(({ id }) => id);
  assert.deepEqual(await names(db), ['a', 'b']);
  assert.deepEqual(await names(db.doc('a/1')), ['y']);
  assert.deepEqual(await names(db.doc('a/none')), ['z']);
  assert.deepEqual(await names(db.doc('b/1')), []);
});

test('documents are counted, summed up and averaged', async (world) => {
  const { AggregateField } = world.sdk;
  const collection = world.collection();
  await fill(collection, { a: { x: 1 }, b: { x: 2.5 }, c: { x: 'text' }, d: {} });
  const all = { count: AggregateField.count(), sum: AggregateField.sum('x'), average: AggregateField.average('x') };
  const answer = await collection.aggregate(all).get();
  assert.deepEqual(answer.data(), { count: 3, sum: 3.5, average: 1.75 });
  assert.equal((await collection.count().get()).data().count, 4);
  assert.equal((await collection.where('x', '>', 1).count().get()).data().count, 1);
  assert.equal((await collection.limit(2).count().get()).data().count, 2);
});

test('of nothing the count and the sum are zero, and the average is null', async (world) => {
  const { AggregateField } = world.sdk;
  const all = { count: AggregateField.count(), sum: AggregateField.sum('x'), average: AggregateField.average('x') };
  const answer = await world.collection().aggregate(all).get();
  assert.deepEqual(answer.data(), { count: 0, sum: 0, average: null });
});

test('the partitions of a collection group together are all of it', async (world) => {
  const db = world.emptyDatabase();
  const documents = Array.from({ length: 300 }, (_, number) => [`d${number}`, { number }]);
  await fill(db.collection('a/1/c'), Object.fromEntries(documents));
  const partitions = async () => {
    const found = [];
    for await (const partition of db.collectionGroup('c').getPartitions(4)) found.push(partition);
    return found;
  };
  if (world.isOfficial) {
    await refused('UNIMPLEMENTED', partitions());
    return;
  }
  const seen = [];
  for (const partition of await partitions()) {
    for (const { id } of (await partition.toQuery().get()).docs) seen.push(id);
  }
  assert.deepEqual(seen.sort(), documents.map(([id]) => id).sort());
});

test('the nearest vectors are found', async (world) => {
  const { FieldValue } = world.sdk;
  const collection = world.collection();
  await fill(collection, {
    near: { v: FieldValue.vector([1, 1]) }, far: { v: FieldValue.vector([9, 9]) }, other: { v: FieldValue.vector([1]) },
  });
  const query = collection.findNearest({
    vectorField: 'v', queryVector: [1, 2], limit: 5, distanceMeasure: 'EUCLIDEAN', distanceResultField: 'distance',
  });
  const found = (await query.get()).docs.map((document) => [document.id, document.get('distance')]);
  assert.deepEqual(found, [['near', 1], ['far', Math.hypot(8, 7)]]);
});

test('an explained query tells its plan and what it read', async (world) => {
  const collection = world.collection();
  await fill(collection, { a: { x: 1 }, b: { x: 2 } });
  const explaining = collection.where('x', '>', 1).explain({ analyze: true });
  if (world.isOfficial) {
    await assert.rejects(explaining, /No explain results/);
    return;
  }
  const explained = await explaining;
  assert.equal(explained.snapshot.size, 1);
  assert.equal(explained.metrics.executionStats.resultsReturned, 1);
  assert.ok(explained.metrics.planSummary.indexesUsed.length > 0);
});
