// Files in the chat page: attached, checked, shown before and after they are sent.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';

import { run, test, until } from '../../client/harness.mjs';
import { World } from './world.mjs';

const TO = '+491511234567';
/** A picture of one pixel. */
const PICTURE = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');

test('a picture is attached and previewed, and the thread shows it when it is sent', async (world) => {
  const accountId = await world.account();
  const chat = await world.chat(accountId, TO);
  await chat.page.locator('#file').setInputFiles({ name: 'cat.png', mimeType: 'image/png', buffer: PICTURE });
  await chat.page.locator('#preview[src^="blob:"]').waitFor();
  await chat.say('Look');
  const id = await chat.becomes('Look', 'read');
  const picture = chat.page.locator('#messages img');
  await until('the picture', () => picture.evaluate(({ complete, naturalWidth }) => complete && naturalWidth), (width) => width === 1);
  assert.equal(await chat.page.locator('#attached').isVisible(), false);
  const { parts } = await world.documents.read(`outbox/${id}`);
  const mediaId = createHash('sha256').update(PICTURE).digest('hex');
  assert.deepEqual(parts, [{ type: 'media', mediaId, mimeType: 'image/png', filename: 'cat.png', caption: 'Look' }]);
  const uploads = await (await fetch(`${world.given.provider}/_sim/media?accountId=${accountId}`)).json();
  assert.deepEqual(uploads.map(({ sha256 }) => sha256), [mediaId], 'the provider got this very file, once');
});

test('a file of a type that is not taken is refused in the page, before anything is sent', async (world) => {
  const chat = await world.chat(await world.account(), TO);
  await chat.page.locator('#file').setInputFiles({ name: 'page.html', mimeType: 'text/html', buffer: Buffer.from('<p>') });
  await chat.page.locator('#problem').getByText('Files of this type cannot be sent.').waitFor();
  assert.equal(await chat.page.locator('#attached').isVisible(), false);
});

const world = await World.start(JSON.parse(process.env.WORLD));
await run(world);
await world.end();
