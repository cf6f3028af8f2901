// The SDK for browsers, while the server is killed and comes back with what it had.

import assert from 'node:assert/strict';

import { doc, orderBy, query, setDoc, updateDoc } from 'firebase/firestore';

import { run, test } from '../client/harness.mjs';
import { Server } from './mortal.mjs';
import { World, is, seenBy, stored, watched } from './web/world.mjs';

const told = JSON.parse(process.env.WORLD);
const server = new Server(told.wishes);

const view = (snapshot) => snapshot.docs.map((document) => `${document.id}:${document.get('x')}`).join(' ');

test('what is written while the server is away is shown at once and arrives when it is back', async (world) => {
  const document = world.document();
  await setDoc(document, { x: 1 });
  const { seen, stop } = watched(document, (snapshot) => snapshot.get('x'));
  await seen.until('the document', is(1));
  await server.kill();
  const writing = updateDoc(document, { x: 2 });
  await seen.until('the change', is(2));
  await server.start();
  await writing;
  stop();
  assert.deepEqual(await stored(seenBy(world.client(), document)), { x: 2 });
  assert.deepEqual(seen.values, [1, 2]);
});

test('listeners go on where they were, and show nothing that was not so', async (world) => {
  const collection = world.collection();
  await setDoc(doc(collection, 'a'), { x: 1 });
  const all = watched(query(collection, orderBy('x')), view);
  const one = watched(doc(collection, 'a'), (snapshot) => snapshot.get('x'));
  await all.seen.until('the document', is('a:1'));
  await one.seen.until('the document', is(1));
  await server.kill();
  await server.start();
  const another = seenBy(world.client(), collection);
  await setDoc(doc(another, 'b'), { x: 2 });
  await updateDoc(doc(another, 'a'), { x: 3 });
  await all.seen.until('both', is('b:2 a:3'));
  await one.seen.until('the change', is(3));
  [all, one].forEach(({ stop }) => stop());
  assert.deepEqual(one.seen.values, [1, 3]);
  assert.deepEqual(all.seen.values.filter((value) => value !== 'a:1 b:2'), ['a:1', 'b:2 a:3']);
});

const world = new World(told);
await run(world);
await world.end();
