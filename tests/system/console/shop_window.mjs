// Accounts, messages, runs and people as a business of six shops has them, for the pictures of the console.

const minutesAgo = (minutes) => new Date(Date.now() - minutes * 60_000);
const PEOPLE = [
  ['+4915550000001', 'Ada Winter'], ['+4915550000002', 'Ben Sommer'], ['+4915550000003', 'Carla Vogel'], ['+4915550000004', 'Deniz Kaya'],
  ['+4915550000005', 'Eva Lindt'], ['+4915550000006', 'Farid Nasser'], ['+4915550000007', 'Grete Holm'], ['+4915550000008', 'Hannes Beck'],
];
const TEXTS = {
  bakery: 'Your cake is ready. You can pick it up until six this evening.',
  clinic: 'A reminder of your appointment tomorrow at 9:40 with Dr Sommer. Please bring your card.',
  florist: 'Your bouquet is on its way and arrives between two and four.',
  garage: 'Your car passed its inspection. The keys are at the front desk.',
  shop: 'Thank you for your order. It leaves our warehouse today.',
  theatre: 'Doors open at seven. Your seats are in row 4, 11 and 12.',
};
const ERRORS = { bakery: ['recipient_invalid', 'The number is not on WhatsApp.'], shop: ['window_closed', 'More than 24 hours since the last reply.'], clinic: ['provider_unavailable', 'The provider is busy.'] };
let count = 0;

/** An outbox document and its message, as the worker leaves them. */
async function write(documents, accountId, status, { requestId, minutes = 0, tried = false, runId } = {}) {
  count += 1;
  const id = requestId ?? `${count.toString(16).padStart(4, '0')}7c1e-5b2a-4f0d-9e63-${(0x4a1b2c3d4e * (count + 7)).toString(16).slice(0, 12)}`;
  const [to, name] = PEOPLE[count % PEOPLE.length];
  const threadId = `${accountId}__${to}`;
  const createdAt = minutesAgo(minutes);
  const parts = [{ type: 'text', text: `Hello ${name.split(' ')[0]}. ${TEXTS[accountId]}` }];
  const both = { requestId: id, accountId, threadId, to, parts, createdAt, ...(runId ? { runId, targetId: id } : { createdBy: 'demo-agent' }) };
  const at = new Date(createdAt.getTime() + 2_400);
  const sent = ['sent', 'delivered', 'read'].includes(status);
  const stored = sent ? 'sent' : status;
  const shown = sent || ['failed', 'cancelled', 'skipped'].includes(status) ? status : 'queued';
  const ended = sent || ['failed', 'cancelled', 'skipped'].includes(status) ? { expireAt: new Date(Date.now() + 30 * 86_400_000) } : {};
  const receipts = { ...(sent ? { sentAt: at } : {}), ...(['delivered', 'read'].includes(status) ? { deliveredAt: new Date(at.getTime() + 1_800) } : {}), ...(status === 'read' ? { readAt: new Date(at.getTime() + 64_000) } : {}) };
  if (!runId || stored !== 'queued') await documents.put(`threads/${threadId}/messages/${id}`, { ...both, direction: 'outbound', status: shown, ...receipts });
  const due = status === 'queued' ? { nextAttemptAt: new Date(Date.now() + 7_200_000) } : {};
  const [code, message] = ERRORS[accountId] ?? ['provider_unavailable', 'The provider is busy.'];
  const error = status === 'failed' || tried ? { lastError: { code, message, retryable: tried, at } } : status === 'uncertain' ? { lastError: { code: 'outcome_unknown', message: 'The connection ended before the answer.', retryable: true, at } } : {};
  const outcome = sent ? { sentAt: at, providerMessageId: `wamid.HBgM${(count * 7_919).toString(36).toUpperCase()}` } : {};
  await documents.put(`outbox/${id}`, { ...both, status: stored, attempts: stored === 'queued' && !tried ? 0 : 1, ...due, ...error, ...outcome, ...ended });
  return id;
}

async function run(documents, accountId, runId, status, fates, text) {
  const createdAt = minutesAgo(35);
  const total = Object.values(fates).reduce((sum, one) => sum + one, 0);
  await documents.put(`runs/${runId}`, {
    runId, accountId, parts: [{ type: 'text', text }], timezone: 'Europe/Berlin', window: { startHour: 0, endHour: 24 }, onWindowEnd: 'stop',
    fireAt: createdAt, windowEndAt: new Date(Date.now() + 5 * 3_600_000), status, expanded: true, total, createdAt,
  });
  for (const [fate, number] of Object.entries(fates)) for (let index = 0; index < number; index += 1) await write(documents, accountId, fate, { runId, minutes: 30 - index / 2 });
}

async function reminder(documents, id, accountId, status, text, days) {
  await documents.put(`reminders/${id}`, {
    accountId, parts: [{ type: 'text', text }], targets: PEOPLE.map(([to], index) => ({ id: `t${index}`, to })), createdAt: minutesAgo(9_000), timezone: 'Europe/Berlin',
    window: { startHour: 9, endHour: 18 }, schedule: { type: 'once', at: new Date(Date.now() + days * 86_400_000) }, nextFireAt: new Date(Date.now() + days * 86_400_000), status,
  });
}

/** Fills a new stack. Returns the names that addresses of pages need. */
export async function open(documents) {
  const providers = { bakery: 'waha', clinic: 'whatsapp_cloud' };
  for (const name of Object.keys(TEXTS)) {
    await documents.put(`accounts/${name}`, { provider: providers[name] ?? 'simulated', status: 'active', timezone: 'Europe/Berlin', pace: { perMinute: 40, burst: 3 }, window: { startHour: 0, endHour: 24 } });
    for (const [uid, role] of [['demo-user', 'owner'], ['demo-agent', 'agent'], ['demo-viewer', 'viewer']]) await documents.put(`accounts/${name}/members/${uid}`, { role, uid });
  }
  await documents.change('accounts/garage', { status: 'parked', parkedBecause: { code: 'auth', message: 'The access token has expired.', retryable: false, at: minutesAgo(95) } });
  await documents.change('accounts/theatre', { status: 'paused', pausedUntil: new Date(Date.now() + 3_600_000) });
  const fates = ['read', 'delivered', 'read', 'sent', 'read', 'queued', 'delivered', 'cancelled'];
  for (let index = 0; index < 24; index += 1) await write(documents, Object.keys(TEXTS)[index % 6], fates[index % fates.length], { minutes: 3 + 7 * index });
  for (const [account, status, minutes] of [['bakery', 'uncertain', 6], ['florist', 'uncertain', 11], ['bakery', 'failed', 14], ['shop', 'failed', 21], ['shop', 'failed', 25], ['shop', 'failed', 26], ['clinic', 'failed', 48]]) await write(documents, account, status, { minutes });
  const minute = Math.floor(Date.now() / 60_000);
  for (const name of ['bakery', 'clinic', 'florist', 'shop']) {
    const rows = Array.from({ length: 60 }, (_, back) => [minute - 59 + back, Math.max(0, Math.round(14 + 11 * Math.sin(back / 7 + name.charCodeAt(0)) + 5 * Math.sin(back * 2.3 + name.charCodeAt(1)))), (back + name.charCodeAt(0)) % 23 ? 0 : 1, back > 30 && back < 34 ? 3 : 0].join(' '));
    await documents.put(`lanes/outbox:${name}`, { state: 'idle', fence: 1, recent: [`${Math.floor(minute / 1440)} 1740`, ...rows].join('|') });
  }
  for (const [to, name] of PEOPLE) await documents.put(`accounts/shop/contacts/${to}`, { name, pushName: name.split(' ')[0], updatedAt: minutesAgo(600) });
  await documents.put('accounts/bakery/session/current', { state: 'scan' });
  await documents.put('accounts/bakery/session/qr', { code: '2@anExampleOfACodeThatAPhoneScans,withSomeLength,andSomeMore' });
  for (const [at, [action, detail]] of Object.entries([['set', { 'pace.perMinute': 40 }], ['account.pause', { subject: 'shop', outcome: 'shop is paused.', via: 'console' }], ['account.resume', { subject: 'shop', outcome: 'shop sends again.', via: 'console' }], ['member', { uid: 'demo-viewer', role: 'viewer' }]])) {
    await documents.put(`accounts/shop/actions/a${at}`, { at: minutesAgo(400 - 60 * at), by: at % 2 ? 'demo-user' : 'operator', action, detail });
  }
  await run(documents, 'clinic', 'autumn-checkups-20261118', 'paused', { read: 9, delivered: 6, sent: 3, failed: 2, uncertain: 1, queued: 13 }, 'It is time for your autumn check-up. Reply 1 to book.');
  await run(documents, 'shop', 'sale-on-saturday-1', 'partial', { read: 6, delivered: 3, failed: 1 }, 'Sale on Saturday: everything for the garden at half price.');
  await reminder(documents, 'autumn-checkups', 'clinic', 'active', 'It is time for your autumn check-up. Reply 1 to book.', 7);
  await reminder(documents, 'sale-on-saturday', 'shop', 'paused', 'Sale on Saturday: everything for the garden at half price.', 2);
  await documents.put('jobs/job-1', { kind: 'nextup', key: 'shop__+4915550000004', events: ['e1', 'e2'], error: "KeyError: 'order' in reply_to_customer", at: minutesAgo(33) });
  await documents.put('limits/whatsapp', { perSecond: 80, burst: 20 });
  await documents.put('limits/crm', { perSecond: 5, burst: 5 });
  return { MESSAGE: await write(documents, 'theatre', 'queued', { requestId: 'tickets-4711', minutes: 8, tried: true }), READ: await write(documents, 'florist', 'read', { requestId: 'bouquet-1204', minutes: 35 }), RUN: 'autumn-checkups-20261118' };
}
