// The pictures of the console in docs/: Now and one message, with messages of several fates.

import { randomBytes } from 'node:crypto';

import { World } from './world.mjs';

const { folder, shots, ...given } = JSON.parse(process.env.WORLD);
const world = await World.start(given);
const TO = '+4915550000001';

async function write(accountId, status, fields = {}) {
  const requestId = fields.requestId ?? randomBytes(8).toString('hex');
  const threadId = `${accountId}__${TO}`;
  const now = new Date();
  const both = { requestId, accountId, threadId, to: TO, parts: [{ type: 'text', text: 'Good morning Ada, your bouquet is ready.' }], createdAt: new Date(now - 480_000), createdBy: 'demo-agent' };
  await world.documents.put(`threads/${threadId}/messages/${requestId}`, { ...both, direction: 'outbound', status: status === 'failed' ? 'failed' : 'queued' });
  const due = status === 'uncertain' ? {} : { nextAttemptAt: new Date(now.getTime() + 7_200_000) };
  const tried = status === 'queued' && !fields.tried ? { attempts: 0 } : { attempts: 1, lastError: { code: 'provider_unavailable', message: 'The provider is busy.', retryable: true, at: new Date(now - 420_000) } };
  await world.documents.put(`outbox/${requestId}`, { ...both, status, ...due, ...tried });
  return requestId;
}

for (const name of ['bakery', 'clinic', 'florist', 'garage', 'shop', 'theatre']) {
  await world.documents.put(`accounts/${name}`, { provider: 'simulated', status: 'active', timezone: 'UTC', pace: { perMinute: 40 } });
  for (const [uid, role] of [['demo-user', 'owner'], ['demo-agent', 'agent']]) await world.documents.put(`accounts/${name}/members/${uid}`, { role, uid });
}
await world.documents.change('accounts/garage', { status: 'parked', parkedBecause: { code: 'auth', message: 'refused', retryable: false, at: new Date() } });
await world.documents.change('accounts/theatre', { status: 'paused', pausedUntil: new Date(Date.now() + 3_600_000) });
for (const [account, status] of [['bakery', 'uncertain'], ['bakery', 'failed'], ['shop', 'failed'], ['shop', 'failed'], ['clinic', 'queued'], ['florist', 'queued'], ['florist', 'queued']]) await write(account, status);
const minute = Math.floor(Date.now() / 60_000);
for (const name of ['bakery', 'florist', 'shop']) {
  const rows = Array.from({ length: 60 }, (_, back) => [minute - 59 + back, Math.round(14 + 11 * Math.sin(back / 7 + name.length)), back % 17 ? 0 : 1, back > 30 && back < 34 ? 3 : 0].join(' '));
  await world.documents.put(`lanes/outbox:${name}`, { state: 'idle', fence: 1, recent: [`${Math.floor(minute / 1440)} 1740`, ...rows].join('|') });
}
await world.documents.put('accounts/bakery/session/current', { state: 'scan' });
await world.documents.put('accounts/bakery/session/qr', { code: '2@anExampleOfACodeThatAPhoneScans,withSomeLength,andSomeMore' });
const message = await write('theatre', 'queued', { requestId: 'bouquet-4711', tried: true });
for (const { name, path, width, height, colorScheme, person } of shots) {
  const page = await world.signedIn(person, path.replace('MESSAGE', message), { viewport: { width, height }, colorScheme, deviceScaleFactor: 1, timezoneId: 'Europe/Berlin' });
  await page.getByText('Times in Europe/Berlin').waitFor();
  await page.screenshot({ path: `${folder}/${name}.png` });
}
await world.end();
console.log('{"name":"screenshot","error":null}');
