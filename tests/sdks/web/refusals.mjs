// Bad input: the code that each is answered with, to a write, to a read and to a listener.

import assert from 'node:assert/strict';

import { collection as collectionOf, doc, getDoc, getDocs, query, setDoc, where } from 'firebase/firestore';

import { test } from '../../client/harness.mjs';
import { refused } from '../codes.mjs';
import { is, stored, watched } from './world.mjs';

test('a document larger than a mebibyte is refused, and taken back from the cache', async (world) => {
  const document = world.document();
  await refused('INVALID_ARGUMENT', setDoc(document, { text: 'x'.repeat(1024 * 1024) }));
  assert.equal((await getDoc(document)).exists(), false);
});

test('reserved names are refused', async (world) => {
  await refused('INVALID_ARGUMENT', setDoc(doc(world.collection(), '__reserved__'), { x: 1 }));
  await refused('INVALID_ARGUMENT', setDoc(doc(collectionOf(world.db, '__reserved__'), 'a'), { x: 1 }));
});

test('a listener on a query that is none gets an error, and the others live on', async (world) => {
  const collection = world.collection();
  const good = watched(doc(collection, 'a'), (snapshot) => snapshot.exists());
  const bad = watched(collectionOf(world.db, '__reserved__'), () => 'shown');
  await bad.seen.until('the refusal', is('error: invalid-argument'));
  await setDoc(doc(collection, 'a'), { x: 1 });
  await good.seen.until('the document', is(true));
  good.stop();
});

test('what was refused leaves nothing behind for those that follow', async (world) => {
  const collection = world.collection();
  const numbers = Array.from({ length: 31 }, (_, number) => number);
  await assert.rejects(async () => getDocs(query(collection, where('x', 'in', numbers))), { code: 'invalid-argument' });
  await setDoc(doc(collection, 'a'), { x: 1 });
  assert.deepEqual(await stored(doc(collection, 'a')), { x: 1 });
});
