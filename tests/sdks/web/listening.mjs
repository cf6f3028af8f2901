// Listeners: what they are told, in which order, before the server knows and after.

import assert from 'node:assert/strict';

import {
  collection as collectionOf,
  collectionGroup,
  deleteDoc,
  doc,
  getDocs,
  limit,
  limitToLast,
  onSnapshotsInSync,
  orderBy,
  query,
  serverTimestamp,
  setDoc,
  updateDoc,
  where,
} from 'firebase/firestore';

import { Seen, test } from '../../client/harness.mjs';
import { fill, is, seenBy, stored, watched } from './world.mjs';

const fields = (snapshot) => JSON.stringify(snapshot.data() ?? null);
const view = (snapshot) => snapshot.docs.map((document) => `${document.id}:${document.get('x')}`).join(' ');
const changes = (snapshot) => snapshot.docChanges()
  .map(({ type, doc: { id }, oldIndex, newIndex }) => `${type} ${id} ${oldIndex} ${newIndex}`).join(', ');
const state = ({ metadata: { hasPendingWrites, fromCache } }) => (
  `${hasPendingWrites ? 'pending' : 'stored'} ${fromCache ? 'cache' : 'server'}`
);

test('a document that another client writes is watched until it is gone', async (world) => {
  const document = world.document();
  const another = seenBy(world.client(), document);
  const { seen, stop } = watched(document, fields);
  await seen.until('nothing', is('null'));
  await setDoc(another, { x: 1 });
  await seen.until('the document', is('{"x":1}'));
  await updateDoc(another, { x: 2 });
  await seen.until('the change', is('{"x":2}'));
  await deleteDoc(another);
  await seen.until('nothing again', () => seen.values.length > 3);
  stop();
  assert.deepEqual(seen.values, ['null', '{"x":1}', '{"x":2}', 'null']);
});

test('a query on what another client writes tells what comes, changes and goes', async (world) => {
  const collection = world.collection();
  const another = seenBy(world.client(), collection);
  await fill(another, { a: { x: 1 }, z: { x: 0 } });
  const positive = query(collection, where('x', '>', 0), orderBy('x'));
  const { seen, stop } = watched(positive, (snapshot) => [view(snapshot), changes(snapshot)]);
  const shows = (wanted) => seen.until(wanted, ([shown]) => shown === wanted);
  await shows('a:1');
  await setDoc(doc(another, 'b'), { x: 2 });
  await shows('a:1 b:2');
  await updateDoc(doc(another, 'a'), { x: 3 });
  await shows('b:2 a:3');
  await updateDoc(doc(another, 'b'), { x: -1 });
  await shows('a:3');
  await deleteDoc(doc(another, 'a'));
  await shows('');
  stop();
  assert.deepEqual(seen.values.map(([, change]) => change), [
    'added a -1 0', 'added b -1 1', 'modified a 0 1', 'removed b 0 -1', 'removed a 0 -1',
  ]);
});

test('a write is shown at once, as pending, and again when the server has it', async (world) => {
  const document = world.document();
  const tell = (snapshot) => `${snapshot.exists() ? snapshot.data().x : '-'} ${state(snapshot)}`;
  const { seen, stop } = watched(document, tell, { includeMetadataChanges: true });
  await seen.until('nothing', is('- stored server'));
  await setDoc(document, { x: 1 });
  await seen.until('the server has it', is('1 stored server'));
  stop();
  assert.deepEqual(seen.values, ['- stored server', '1 pending server', '1 stored server']);
});

test('a server timestamp is null until the server has set it, or estimated', async (world) => {
  const document = world.document();
  const tell = (snapshot) => ({
    isPending: snapshot.metadata.hasPendingWrites,
    at: snapshot.get('at')?.toMillis() ?? null,
    estimate: snapshot.get('at', { serverTimestamps: 'estimate' })?.toMillis() ?? null,
  });
  const { seen, stop } = watched(document, tell, { includeMetadataChanges: true });
  await seen.until('nothing', () => true);
  await setDoc(document, { at: serverTimestamp() });
  const pending = await seen.until('pending', ({ isPending }) => isPending);
  assert.equal(pending.at, null);
  assert.ok(pending.estimate > 0);
  const { at } = await seen.until('set', (value) => !value.isPending && value.at !== null);
  stop();
  assert.equal(at, (await stored(document)).at.toMillis());
});

test('a write of two clients at once ends the same for both', async (world) => {
  const document = world.document();
  const another = seenBy(world.client(), document);
  const both = [watched(document, fields), watched(another, fields)];
  await Promise.all(both.map(({ seen }) => seen.until('nothing', is('null'))));
  await Promise.all([setDoc(document, { x: 1 }), setDoc(another, { x: 2 })]);
  const last = JSON.stringify(await stored(seenBy(world.client(), document))); // by one who knows of neither
  for (const { seen, stop } of both) {
    await seen.until('what is stored', () => seen.values.at(-1) === last);
    stop();
  }
});

test('a commit of many writes is shown as one change', async (world) => {
  const collection = world.collection();
  const { seen, stop } = watched(query(collection, orderBy('x')), view);
  await seen.until('nothing', is(''));
  await fill(seenBy(world.client(), collection), { a: { x: 1 }, b: { x: 2 }, c: { x: 3 } });
  await seen.until('all', is('a:1 b:2 c:3'));
  stop();
  assert.deepEqual(seen.values, ['', 'a:1 b:2 c:3']);
});

test('a limited query is filled up from what was outside', async (world) => {
  const collection = world.collection();
  const another = seenBy(world.client(), collection);
  await fill(another, { a: { x: 1 }, b: { x: 2 }, c: { x: 3 } });
  const first = watched(query(collection, orderBy('x'), limit(2)), view);
  const last = watched(query(collection, orderBy('x'), limitToLast(2)), view);
  await first.seen.until('the first two', is('a:1 b:2'));
  await last.seen.until('the last two', is('b:2 c:3'));
  await deleteDoc(doc(another, 'a'));
  await first.seen.until('the third has come in', is('b:2 c:3'));
  await setDoc(doc(another, 'd'), { x: 0 });
  await first.seen.until('and is pushed out', is('d:0 b:2'));
  await deleteDoc(doc(another, 'c'));
  await last.seen.until('what is left', is('d:0 b:2'));
  [first, last].forEach(({ stop }) => stop());
});

test('a collection group is watched', async (world) => {
  const db = world.emptyDatabase();
  const { seen, stop } = watched(query(collectionGroup(db, 'c'), orderBy('x')), view);
  await seen.until('nothing', is(''));
  const another = world.client(db.app.options.projectId);
  await fill(collectionOf(another, 'a/1/c'), { one: { x: 1 } });
  await fill(collectionOf(another, 'c'), { two: { x: 2 } });
  await seen.until('both', is('one:1 two:2'));
  stop();
});

test('many listeners on one stream each see their own', async (world) => {
  const collection = world.collection();
  const numbers = Array.from({ length: 25 }, (_, number) => number);
  const each = numbers.map((number) => watched(query(collection, where('x', '==', number)), view));
  const one = watched(doc(collection, 'd3'), fields);
  await fill(seenBy(world.client(), collection), Object.fromEntries(numbers.map((x) => [`d${x}`, { x }])));
  await Promise.all(numbers.map((number) => each[number].seen.until(`d${number}`, is(`d${number}:${number}`))));
  await one.seen.until('the document', is('{"x":3}'));
  [...each, one].forEach(({ stop }) => stop());
});

test('listeners are told in step', async (world) => {
  const collection = world.collection();
  const sums = new Seen();
  const latest = {};
  const listen = (name, part) => watched(query(collection, part), (snapshot) => (latest[name] = view(snapshot)));
  const both = [listen('low', where('x', '<', 5)), listen('high', where('x', '>=', 5))];
  const stop = onSnapshotsInSync(world.db, () => sums.add(`${latest.low} | ${latest.high}`));
  const another = seenBy(world.client(), collection);
  await setDoc(doc(another, 'a'), { x: 1 });
  await sums.until('low', is('a:1 | '));
  await setDoc(doc(another, 'a'), { x: 9 });
  await sums.until('high', is(' | a:9'));
  [stop, ...both.map((one) => one.stop)].forEach((end) => end());
  assert.ok(!sums.values.includes('a:1 | a:9'), 'it was never in both');
});

test('a listener that has stopped gets nothing more, and may listen again', async (world) => {
  const document = world.document();
  const another = seenBy(world.client(), document);
  const gone = watched(document, fields);
  await gone.seen.until('nothing', is('null'));
  gone.stop();
  await setDoc(another, { x: 1 });
  const again = watched(document, fields);
  await again.seen.until('the document', is('{"x":1}'));
  again.stop();
  assert.deepEqual(gone.seen.values, ['null']);
});

test('what a listener has seen is in the cache when the listener is there again', async (world) => {
  const collection = world.collection();
  const another = seenBy(world.client(), collection);
  await fill(another, { a: { x: 1 }, b: { x: 2 } });
  const first = watched(query(collection, orderBy('x')), view);
  await first.seen.until('both', is('a:1 b:2'));
  first.stop();
  await deleteDoc(doc(another, 'a'));
  await setDoc(doc(another, 'c'), { x: 3 });
  const second = watched(query(collection, orderBy('x')), view);
  await second.seen.until('what is there now', is('b:2 c:3'));
  second.stop();
  assert.equal((await getDocs(collection)).size, 2);
});
