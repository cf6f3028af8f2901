// Every type of value, to the server and back: written by one client and read by another.

import assert from 'node:assert/strict';

import { Bytes, GeoPoint, Timestamp, doc, refEqual, setDoc, vector } from 'firebase/firestore';

import { test } from '../../client/harness.mjs';
import { seenBy, stored } from './world.mjs';

async function roundTrip(world, value) {
  const document = world.document();
  await setDoc(document, { value });
  return (await stored(seenBy(world.reader, document))).value;
}

test('null, booleans and strings come back as they were', async (world) => {
  for (const value of [null, true, false, '', 'é😀\u0000', 'x'.repeat(10_000)]) {
    assert.equal(await roundTrip(world, value), value);
  }
});

test('numbers come back as they were, and so do those that equal nothing', async (world) => {
  const { MAX_SAFE_INTEGER: largest, MAX_VALUE, MIN_VALUE } = Number;
  for (const value of [0, -0, 1, -1.5, largest, -largest, MAX_VALUE, MIN_VALUE, Infinity, -Infinity, NaN]) {
    assert.ok(Object.is(await roundTrip(world, value), value), `${value}`);
  }
});

test('a time keeps its microseconds and loses what is finer', async (world) => {
  const found = await roundTrip(world, new Timestamp(1_700_000_000, 123_456_789));
  assert.ok(found.isEqual(new Timestamp(1_700_000_000, 123_456_000)), found.toString());
});

test('times before 1970 and at both ends of the calendar come back as they were', async (world) => {
  for (const seconds of [-1, -62_135_596_800, 253_402_300_799]) {
    const time = new Timestamp(seconds, 1000);
    assert.ok((await roundTrip(world, time)).isEqual(time), `${seconds}`);
  }
});

test('bytes come back as they were', async (world) => {
  for (const bytes of [[], [0, 255, 128]].map((list) => Bytes.fromUint8Array(new Uint8Array(list)))) {
    assert.ok((await roundTrip(world, bytes)).isEqual(bytes));
  }
});

test('geo points come back as they were', async (world) => {
  for (const point of [new GeoPoint(1.5, -2.5), new GeoPoint(90, 180), new GeoPoint(-90, -180)]) {
    assert.ok((await roundTrip(world, point)).isEqual(point));
  }
});

test('a reference comes back and can be followed', async (world) => {
  const target = doc(world.collection(), 'target');
  await setDoc(target, { x: 1 });
  const found = await roundTrip(world, target);
  assert.ok(refEqual(seenBy(world.db, found), target));
  assert.deepEqual(await stored(found), { x: 1 });
});

test('arrays and maps nest in each other', async (world) => {
  const value = { list: [1, 'a', null, { deep: [{ deeper: { deepest: [] } }] }, {}], 'a.b': { '`': 1 } };
  assert.deepEqual(await roundTrip(world, value), value);
});

test('a vector comes back as a vector', async (world) => {
  const value = vector([1, -2.5, 3]);
  const found = await roundTrip(world, value);
  assert.ok(found.isEqual(value));
  assert.deepEqual(found.toArray(), [1, -2.5, 3]);
});
