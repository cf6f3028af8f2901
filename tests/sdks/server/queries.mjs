// Queries: every operator, alone and together, and every way to cut a result.

import assert from 'node:assert/strict';

import { test } from '../../client/harness.mjs';
import { OPERATORS, PEOPLE } from '../people.mjs';
import { fill, ids } from './world.mjs';

async function people(world) {
  const collection = world.collection();
  await fill(collection, PEOPLE);
  return collection;
}

test('each operator finds what it says', async (world) => {
  const collection = await people(world);
  const found = [];
  for (const [field, operator, value] of OPERATORS) {
    found.push([field, operator, value, await ids(collection.where(field, operator, value))]);
  }
  assert.deepEqual(found, OPERATORS);
});

test('documents are found by their ids', async (world) => {
  const { FieldPath } = world.sdk;
  const collection = await people(world);
  const id = FieldPath.documentId();
  assert.equal(await ids(collection.where(id, '==', 'emmy')), 'emmy');
  assert.equal(await ids(collection.where(id, 'in', ['grace', 'ada'])), 'ada grace');
  assert.equal(await ids(collection.where(id, '>', 'alan')), 'emmy grace');
});

test('conditions in a row must all hold', async (world) => {
  const collection = await people(world);
  assert.equal(await ids(collection.where('city', '==', 'London').where('tags', 'array-contains', 'maths')), 'ada');
  assert.equal(await ids(collection.where('born', '>', 1815).where('born', '<', 1912)), 'emmy grace');
});

test('conditions may be joined by or', async (world) => {
  const { Filter } = world.sdk;
  const collection = await people(world);
  const either = Filter.or(Filter.where('born', '<', 1850), Filter.where('city', '==', 'New York'));
  assert.equal(await ids(collection.where(either)), 'ada grace');
  const nested = Filter.or(
    Filter.and(Filter.where('city', '==', 'London'), Filter.where('born', '>', 1900)),
    Filter.where('city', 'in', ['Erlangen', 'Paris']),
  );
  assert.equal(await ids(collection.where(nested).orderBy('born', 'desc')), 'alan emmy');
});

test('inequalities may be on several fields', async (world) => {
  const collection = await people(world);
  const query = collection.where('born', '>', 1850).where('city', '<', 'New York');
  assert.equal(await ids(query), 'emmy alan');
  assert.equal(await ids(query.orderBy('city', 'desc')), 'alan emmy');
});

test('a result is ordered by several fields, up or down', async (world) => {
  const collection = await people(world);
  assert.equal(await ids(collection.orderBy('born', 'desc')), 'alan grace emmy ada');
  assert.equal(await ids(collection.orderBy('city').orderBy('born', 'desc')), 'emmy alan ada grace');
  assert.equal(await ids(collection.orderBy('score')), 'emmy alan ada', 'who has no such field is left out');
});

test('a result begins and ends at cursors', async (world) => {
  const collection = await people(world);
  const byYear = collection.orderBy('born');
  assert.equal(await ids(byYear.startAt(1882)), 'emmy grace alan');
  assert.equal(await ids(byYear.startAfter(1882)), 'grace alan');
  assert.equal(await ids(byYear.endAt(1906)), 'ada emmy grace');
  assert.equal(await ids(byYear.endBefore(1906)), 'ada emmy');
  assert.equal(await ids(byYear.startAt(1882).endBefore(1912)), 'emmy grace');
  assert.equal(await ids(collection.orderBy('city').orderBy('born').startAfter('London', 1815)), 'alan grace');
});

test('a result goes on after a document that was read before', async (world) => {
  const collection = await people(world);
  const alan = await collection.doc('alan').get();
  assert.equal(await ids(collection.orderBy('city').startAfter(alan)), 'grace');
  assert.equal(await ids(collection.orderBy('city').endAt(alan)), 'emmy ada alan');
  assert.equal(await ids(collection.startAt(alan)), 'alan emmy grace');
});

test('a result is read in pages', async (world) => {
  const byYear = (await people(world)).orderBy('born');
  const pages = [];
  for (let last = null; pages.length < 5;) {
    const page = await (last ? byYear.startAfter(last) : byYear).limit(3).get();
    if (page.empty) break;
    pages.push(page.docs.map(({ id }) => id).join(' '));
    last = page.docs.at(-1);
  }
  assert.deepEqual(pages, ['ada emmy grace', 'alan']);
});

test('a result is cut by limit, limit to last and offset', async (world) => {
  const byYear = (await people(world)).orderBy('born');
  assert.equal(await ids(byYear.limit(2)), 'ada emmy');
  assert.equal(await ids(byYear.limitToLast(2)), 'grace alan');
  assert.equal(await ids(byYear.limitToLast(2).endBefore(1912)), 'emmy grace');
  assert.equal(await ids(byYear.offset(1).limit(2)), 'emmy grace');
  assert.equal(await ids(byYear.offset(9)), '');
});

test('only the selected fields are read', async (world) => {
  const collection = await people(world);
  await collection.doc('ada').update({ 'map.k': 1, 'map.l': 2 });
  const selected = await collection.where('born', '==', 1815).select('city', 'map.k').get();
  assert.deepEqual(selected.docs[0].data(), { city: 'London', map: { k: 1 } });
  const none = await collection.where('born', '==', 1815).select().get();
  assert.deepEqual([none.docs[0].id, none.docs[0].data()], ['ada', {}]);
});

test('a collection group is every collection of that name', async (world) => {
  const db = world.emptyDatabase();
  await fill(db.collection('c'), { 1: { x: 1 } });
  await fill(db.collection('d/1/c'), { 2: { x: 2 } });
  await fill(db.collection('d/1/e/1/c'), { 3: { x: 3 } });
  await fill(db.collection('other'), { 4: { x: 4 } });
  assert.equal(await ids(db.collectionGroup('c').orderBy('x', 'desc')), '3 2 1');
  assert.equal(await ids(db.collectionGroup('c').where('x', '>=', 2)), '2 3');
});

test('a result can be streamed', async (world) => {
  const collection = await people(world);
  const seen = [];
  for await (const document of collection.orderBy('born').stream()) seen.push(document.id);
  assert.deepEqual(seen, ['ada', 'emmy', 'grace', 'alan']);
});

test('values of all types have one order', async (world) => {
  const { FieldValue, GeoPoint, Timestamp } = world.sdk;
  const collection = world.collection();
  const inOrder = [
    null, false, true, NaN, -Infinity, -1, 0.5, 1, new Timestamp(1, 0), new Timestamp(1, 1000), '', 'a', 'é', '😀',
    Buffer.from([0]), Buffer.from([0, 1]), collection.doc('a'), collection.doc('b'), new GeoPoint(0, 0),
    new GeoPoint(0, 1), [], [1], [1, 0], FieldValue.vector([1]), FieldValue.vector([0, 0]), {}, { a: 1 }, { a: 2 },
  ];
  const letters = inOrder.map((_, index) => String.fromCharCode(65 + index));
  const shuffled = inOrder.map((value, index) => [letters[index], { value }]).reverse();
  await fill(collection, Object.fromEntries(shuffled));
  assert.equal(await ids(collection.orderBy('value')), letters.join(' '));
});
