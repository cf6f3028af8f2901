// The SDKs for servers, while the server is killed and comes back with what it had.

import assert from 'node:assert/strict';

import { Seen, run, test } from '../client/harness.mjs';
import { Server } from './mortal.mjs';
import { World, ids } from './server/world.mjs';

const told = JSON.parse(process.env.WORLD);
const server = new Server(told.wishes);

const view = (snapshot) => snapshot.docs.map((document) => `${document.id}:${document.get('x')}`).join(' ');

test('what was written before is there afterwards', async (world) => {
  const document = world.document();
  const { writeTime } = await document.set({ x: 1 });
  await server.kill();
  await server.start();
  const found = await document.get();
  assert.deepEqual(found.data(), { x: 1 });
  assert.ok(found.updateTime.isEqual(writeTime));
});

test('a write that finds no server waits until it is back', async (world) => {
  const collection = world.collection();
  await collection.doc('a').set({ x: 1 });
  await server.kill();
  const writing = collection.doc('b').set({ x: 2 });
  await server.start();
  await writing;
  assert.equal(await ids(collection), 'a b');
});

test('listeners go on where they were, and show nothing that was not so', async (world) => {
  const collection = world.collection();
  await collection.doc('a').set({ x: 1 });
  const [all, one] = [new Seen(), new Seen()];
  const stops = [
    collection.orderBy('x').onSnapshot((snapshot) => all.add(view(snapshot)), all.add),
    collection.doc('a').onSnapshot((snapshot) => one.add(snapshot.get('x')), one.add),
  ];
  await all.until('the document', (value) => value === 'a:1');
  await one.until('the document', (value) => value === 1);
  await server.kill();
  await server.start();
  await collection.doc('b').set({ x: 2 });
  await collection.doc('a').update({ x: 3 });
  await all.until('both', (value) => value === 'b:2 a:3');
  await one.until('the change', (value) => value === 3);
  stops.forEach((stop) => stop());
  assert.deepEqual(one.values, [1, 3]);
  assert.deepEqual(all.values.filter((value) => value !== 'a:1 b:2'), ['a:1', 'b:2 a:3']);
});

const world = await World.open(told);
await run(world);
await world.end();
