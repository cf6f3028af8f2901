// A phone is connected in the page, its contacts appear, and pictures go both ways: WAHA's simulator on a whole stack.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';

import { run, test, until } from '../../client/harness.mjs';
import { World } from './world.mjs';

const PICTURE = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
const SHA256 = createHash('sha256').update(PICTURE).digest('hex');

async function ask(world, method, path, body, headers = {}) {
  const answer = await fetch(`${world.given.provider}${path}`, { method, body, headers });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
  return answer.status === 204 ? null : answer.json();
}

const widthOf = (image) => image.evaluate(({ complete, naturalWidth }) => (complete ? naturalWidth : 0));

test('connect, scan the code, see the contacts, send a picture by its address, and see the one that comes back', async (world) => {
  const accountId = await world.account({ provider: 'waha' });
  await ask(world, 'PUT', `/_sim/waha/sessions/${accountId}`, JSON.stringify({ exists: false, paired: false, startMs: 50 }));
  const chat = await world.chat(accountId);
  await chat.page.getByRole('button', { name: 'Connect' }).click();
  const code = chat.page.getByRole('img', { name: 'The code to scan with the phone' });
  await code.waitFor();
  await until('the code to be drawn', () => widthOf(code), (width) => width > 50);

  await ask(world, 'PUT', `/_sim/waha/sessions/${accountId}`, JSON.stringify({ scan: true }));
  await chat.page.getByText('The phone is connected. It knows 3 contacts.').waitFor();
  assert.equal(await code.isVisible(), false, 'the code is of no use any more');

  const contacts = await until('all contacts', () => world.documents.list(`accounts/${accountId}/contacts`), ({ length }) => length === 3);
  const { id: to, data } = contacts.find(({ data: { name } }) => name);
  await chat.page.getByRole('link', { name: data.name }).click();
  await chat.page.locator('#file').setInputFiles({ name: 'cat.png', mimeType: 'image/png', buffer: PICTURE });
  await chat.say('Look');
  const sent = chat.page.locator('#messages li.outbound').filter({ hasText: 'Look' });
  await until('it to be sent', () => sent.getAttribute('data-state'), (state) => ['sent', 'delivered', 'read'].includes(state));
  const fetches = await ask(world, 'GET', '/_sim/waha/fetches');
  const ours = fetches.filter(({ session }) => session === accountId);
  assert.deepEqual(ours.map(({ status, sha256 }) => [status, sha256]), [[200, SHA256]], 'the gateway fetched this very file by its address');

  await ask(world, 'PUT', '/_sim/files/photo.png', PICTURE, { 'content-type': 'image/png' });
  const part = { type: 'media', mediaId: 'photo.png', mimeType: 'image/png', caption: 'And mine' };
  await ask(world, 'POST', '/_sim/inbound', JSON.stringify({ accountId, from: to, provider: 'waha', parts: [part] }));
  const inbound = chat.page.locator('#messages li.inbound').filter({ hasText: 'And mine' });
  const picture = inbound.locator('img');
  await picture.waitFor();
  await until('the picture that came', () => widthOf(picture), (width) => width === 1);
});

const world = await World.start(JSON.parse(process.env.WORLD));
await run(world);
await world.end();
