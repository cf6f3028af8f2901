// Every type of value, to the server and back.

import assert from 'node:assert/strict';

import { test } from '../../client/harness.mjs';

async function roundTrip(world, value) {
  const document = world.document();
  await document.set({ value });
  return (await document.get()).get('value');
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

test('an integer beyond what a double holds comes back whole to those who ask for it', async (world) => {
  const db = world.emptyDatabase();
  db.settings({ useBigInt: true });
  const ends = { least: -(2n ** 63n), most: 2n ** 63n - 1n };
  await db.doc('c/a').set(ends);
  assert.deepEqual((await db.doc('c/a').get()).data(), ends);
});

test('a time keeps its microseconds and loses what is finer', async (world) => {
  const { Timestamp } = world.sdk;
  const found = await roundTrip(world, new Timestamp(1_700_000_000, 123_456_789));
  assert.ok(found.isEqual(new Timestamp(1_700_000_000, 123_456_000)), found.toString());
});

test('times before 1970 and at both ends of the calendar come back as they were', async (world) => {
  const { Timestamp } = world.sdk;
  for (const seconds of [-1, -62_135_596_800, 253_402_300_799]) {
    const time = new Timestamp(seconds, 1000);
    assert.ok((await roundTrip(world, time)).isEqual(time), `${seconds}`);
  }
});

test('a Date becomes a time', async (world) => {
  const date = new Date('2024-02-29T12:00:00.123Z');
  assert.deepEqual((await roundTrip(world, date)).toDate(), date);
});

test('bytes come back as they were', async (world) => {
  for (const bytes of [Buffer.alloc(0), Buffer.from([0, 255, 128]), Buffer.alloc(100_000, 7)]) {
    assert.ok(bytes.equals(await roundTrip(world, bytes)));
  }
});

test('geo points come back as they were', async (world) => {
  const { GeoPoint } = world.sdk;
  for (const point of [new GeoPoint(1.5, -2.5), new GeoPoint(90, 180), new GeoPoint(-90, -180)]) {
    assert.ok((await roundTrip(world, point)).isEqual(point));
  }
});

test('a reference comes back and can be followed', async (world) => {
  const target = world.collection().doc('target');
  await target.set({ x: 1 });
  const found = await roundTrip(world, target);
  assert.ok(found.isEqual(target));
  assert.equal((await found.get()).get('x'), 1);
});

test('arrays and maps nest in each other', async (world) => {
  const value = { list: [1, 'a', null, { deep: [{ deeper: { deepest: [] } }] }, {}], 'a.b': { '`': 1 } };
  assert.deepEqual(await roundTrip(world, value), value);
});

test('a vector comes back as a vector', async (world) => {
  const vector = world.sdk.FieldValue.vector([1, -2.5, 3]);
  const found = await roundTrip(world, vector);
  assert.ok(found.isEqual(vector));
  assert.deepEqual(found.toArray(), [1, -2.5, 3]);
});
