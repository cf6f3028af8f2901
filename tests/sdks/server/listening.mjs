// Listeners: what they are told, in which order, and when no more.

import assert from 'node:assert/strict';

import { Seen, test } from '../../client/harness.mjs';
import { fill } from './world.mjs';

function watched(query, tell) {
  const seen = new Seen();
  const stop = query.onSnapshot((snapshot) => seen.add(tell(snapshot)), (error) => seen.add({ error: error.message }));
  return { seen, stop };
}

const fields = (snapshot) => JSON.stringify(snapshot.data() ?? null);
const view = (snapshot) => snapshot.docs.map((document) => `${document.id}:${document.get('x')}`).join(' ');
const changes = (snapshot) => snapshot.docChanges()
  .map(({ type, doc, oldIndex, newIndex }) => `${type} ${doc.id} ${oldIndex} ${newIndex}`).join(', ');
const is = (wanted) => (value) => value === wanted;

test('a document is watched from before it exists until it is gone', async (world) => {
  const document = world.document();
  const { seen, stop } = watched(document, fields);
  await seen.until('nothing', is('null'));
  await document.set({ x: 1 });
  await seen.until('the document', is('{"x":1}'));
  await document.update({ x: 2 });
  await seen.until('the change', is('{"x":2}'));
  await document.delete();
  await seen.until('nothing again', () => seen.values.length > 3);
  stop();
  assert.deepEqual(seen.values, ['null', '{"x":1}', '{"x":2}', 'null']);
});

test('a query is watched: what comes, what changes and what goes', async (world) => {
  const collection = world.collection();
  await fill(collection, { a: { x: 1 }, z: { x: 0 } });
  const positive = collection.where('x', '>', 0).orderBy('x');
  const { seen, stop } = watched(positive, (snapshot) => [view(snapshot), changes(snapshot)]);
  const shows = (wanted) => seen.until(wanted, ([shown]) => shown === wanted);
  await shows('a:1');
  await collection.doc('b').set({ x: 2 });
  await shows('a:1 b:2');
  await collection.doc('a').update({ x: 3 });
  await shows('b:2 a:3');
  await collection.doc('b').update({ x: -1 });
  await shows('a:3');
  await collection.doc('a').delete();
  await shows('');
  stop();
  assert.deepEqual(seen.values.map(([, change]) => change), [
    'added a -1 0', 'added b -1 1', 'modified a 0 1', 'removed b 0 -1', 'removed a 0 -1',
  ]);
});

test('a commit of many writes is shown as one change', async (world) => {
  const collection = world.collection();
  const { seen, stop } = watched(collection.orderBy('x'), view);
  await seen.until('nothing', is(''));
  await fill(collection, { a: { x: 1 }, b: { x: 2 }, c: { x: 3 } });
  await seen.until('all', is('a:1 b:2 c:3'));
  stop();
  assert.deepEqual(seen.values, ['', 'a:1 b:2 c:3']);
});

test('a limited query is filled up from what was outside', async (world) => {
  const collection = world.collection();
  await fill(collection, { a: { x: 1 }, b: { x: 2 }, c: { x: 3 } });
  const { seen, stop } = watched(collection.orderBy('x').limit(2), view);
  await seen.until('the first two', is('a:1 b:2'));
  await collection.doc('a').delete();
  await seen.until('the third has come in', is('b:2 c:3'));
  await collection.doc('d').set({ x: 0 });
  await seen.until('and is pushed out', is('d:0 b:2'));
  stop();
});

test('the last of an order are watched', async (world) => {
  const collection = world.collection();
  await fill(collection, { a: { x: 1 }, b: { x: 2 }, c: { x: 3 } });
  const { seen, stop } = watched(collection.orderBy('x').limitToLast(2), view);
  await seen.until('the last two', is('b:2 c:3'));
  await collection.doc('d').set({ x: 4 });
  await seen.until('the new last two', is('c:3 d:4'));
  stop();
});

test('a collection group is watched', async (world) => {
  const db = world.emptyDatabase();
  const { seen, stop } = watched(db.collectionGroup('c').orderBy('x'), view);
  await seen.until('nothing', is(''));
  await db.doc('a/1/c/one').set({ x: 1 });
  await db.doc('c/two').set({ x: 2 });
  await seen.until('both', is('one:1 two:2'));
  stop();
});

test('several listeners each see their own', async (world) => {
  const collection = world.collection();
  const all = watched(collection.orderBy('x'), view);
  const some = watched(collection.where('x', '>', 1).orderBy('x'), view);
  const one = watched(collection.doc('a'), fields);
  await fill(collection, { a: { x: 1 }, b: { x: 2 } });
  await Promise.all([
    all.seen.until('both', is('a:1 b:2')),
    some.seen.until('one of them', is('b:2')),
    one.seen.until('the document', is('{"x":1}')),
  ]);
  [all, some, one].forEach(({ stop }) => stop());
});

test('a listener that has stopped gets nothing more', async (world) => {
  const document = world.document();
  const gone = watched(document, fields);
  const other = watched(document, fields);
  await Promise.all([gone, other].map(({ seen }) => seen.until('nothing', is('null'))));
  gone.stop();
  await document.set({ x: 1 });
  await other.seen.until('the document', is('{"x":1}'));
  other.stop();
  assert.deepEqual(gone.seen.values, ['null']);
});
