// Queries of the SDK for browsers, which sends them as targets to listen to, and sums, which it asks for.

import assert from 'node:assert/strict';

import {
  and,
  average,
  collection as collectionOf,
  collectionGroup,
  count,
  doc,
  documentId,
  endAt,
  endBefore,
  getAggregateFromServer,
  getCountFromServer,
  getDoc,
  limit,
  limitToLast,
  or,
  orderBy,
  query,
  startAfter,
  startAt,
  sum,
  where,
} from 'firebase/firestore';

import { test } from '../../client/harness.mjs';
import { OPERATORS, PEOPLE } from '../people.mjs';
import { fill, ids, seenBy } from './world.mjs';

/** Read by a client whose cache is empty: what is found, the server has found. */
async function people(world) {
  const collection = world.collection();
  await fill(collection, PEOPLE);
  return seenBy(world.client(), collection);
}

test('each operator finds what it says', async (world) => {
  const collection = await people(world);
  const found = [];
  for (const [field, operator, value] of OPERATORS) {
    found.push([field, operator, value, await ids(query(collection, where(field, operator, value)))]);
  }
  assert.deepEqual(found, OPERATORS);
});

test('documents are found by their ids', async (world) => {
  const collection = await people(world);
  assert.equal(await ids(query(collection, where(documentId(), 'in', ['grace', 'ada']))), 'ada grace');
  assert.equal(await ids(query(collection, where(documentId(), '>', 'alan'))), 'emmy grace');
});

test('conditions are joined by and and or', async (world) => {
  const collection = await people(world);
  const londoner = and(where('city', '==', 'London'), where('born', '>', 1900));
  assert.equal(await ids(query(collection, londoner)), 'alan');
  const either = query(collection, or(londoner, where('city', 'in', ['Erlangen', 'Paris'])), orderBy('born', 'desc'));
  assert.equal(await ids(either), 'alan emmy');
});

test('inequalities may be on several fields', async (world) => {
  const collection = await people(world);
  assert.equal(await ids(query(collection, where('born', '>', 1850), where('city', '<', 'New York'))), 'emmy alan');
});

test('a result is ordered and cut', async (world) => {
  const collection = await people(world);
  const byYear = (...more) => ids(query(collection, orderBy('born'), ...more));
  assert.equal(await ids(query(collection, orderBy('city'), orderBy('born', 'desc'))), 'emmy alan ada grace');
  assert.equal(await byYear(limit(2)), 'ada emmy');
  assert.equal(await byYear(limitToLast(2)), 'grace alan');
  assert.equal(await byYear(startAt(1882), endBefore(1912)), 'emmy grace');
  assert.equal(await byYear(startAfter(1882), endAt(1912)), 'grace alan');
  const alan = await getDoc(doc(collection, 'alan'));
  assert.equal(await ids(query(collection, orderBy('city'), startAfter(alan))), 'grace');
});

test('a collection group is every collection of that name', async (world) => {
  const db = world.emptyDatabase();
  await fill(collectionOf(db, 'c'), { 1: { x: 1 } });
  await fill(collectionOf(db, 'd/1/c'), { 2: { x: 2 } });
  await fill(collectionOf(db, 'other'), { 3: { x: 3 } });
  const fresh = world.client(db.app.options.projectId);
  assert.equal(await ids(query(collectionGroup(fresh, 'c'), orderBy('x', 'desc'))), '2 1');
});

test('documents are counted, summed up and averaged', async (world) => {
  const collection = world.collection();
  await fill(collection, { a: { x: 1 }, b: { x: 2.5 }, c: { x: 'text' }, d: {} });
  const all = await getAggregateFromServer(collection, { sum: sum('x'), average: average('x'), count: count() });
  assert.deepEqual(all.data(), { sum: 3.5, average: 1.75, count: 3 });
  assert.equal((await getCountFromServer(query(collection, where('x', '>', 1)))).data().count, 1);
});
