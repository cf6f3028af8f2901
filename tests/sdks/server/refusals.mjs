// Bad input: the code that each is answered with.

import assert from 'node:assert/strict';

import { test } from '../../client/harness.mjs';
import { refused } from '../codes.mjs';

test('a document larger than a mebibyte is refused', async (world) => {
  const document = world.document();
  await refused('INVALID_ARGUMENT', document.set({ text: 'x'.repeat(1024 * 1024) }));
  assert.equal((await document.get()).exists, false);
});

test('reserved names are refused', async (world) => {
  const collection = world.collection();
  await refused('INVALID_ARGUMENT', collection.doc('a').set({ __reserved__: 1 }));
  await refused('INVALID_ARGUMENT', collection.doc('__reserved__').set({ x: 1 }));
  await refused('INVALID_ARGUMENT', world.db.collection('__reserved__').doc('a').set({ x: 1 }));
});

test('an id that is too long is refused', async (world) => {
  const collection = world.collection();
  await collection.doc('x'.repeat(1500)).set({});
  await refused('INVALID_ARGUMENT', collection.doc('x'.repeat(1501)).set({}));
});

test('more alternatives than a query may have are refused', async (world) => {
  const collection = world.collection();
  const numbers = (count) => Array.from({ length: count }, (_, number) => number);
  assert.equal((await collection.where('x', 'in', numbers(30)).get()).size, 0);
  await allRefused([
    collection.where('x', 'in', numbers(31)),
    collection.where('x', 'not-in', numbers(11)),
    collection.where('x', 'array-contains-any', numbers(31)),
  ]);
});

test('contradictory conditions are refused', async (world) => {
  const collection = world.collection();
  await allRefused([
    collection.where('x', 'not-in', [1]).where('x', '!=', 2),
    collection.where('x', 'array-contains', 1).where('y', 'array-contains', 2),
  ]);
});

/** At once: on Google's emulator the SDK tries each for seven seconds. */
const allRefused = (queries) => Promise.all(queries.map((query) => refused('INVALID_ARGUMENT', query.get())));

test('a document that was deleted cannot be updated in a batch', async (world) => {
  const document = world.document();
  await document.set({ x: 1 });
  const batch = world.db.batch();
  batch.delete(document).update(document, { x: 2 });
  await assert.rejects(batch.commit());
  assert.deepEqual((await document.get()).data(), { x: 1 });
});
