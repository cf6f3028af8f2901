// What a frontend in TypeScript writes. It is compiled, never run: a line that must not compile says so.

import type { Firestore } from 'firebase/firestore';

import {
  OutboxError,
  addReminder,
  askReminder,
  askRun,
  cancel,
  editReminder,
  listRuns,
  markRead,
  newRequestId,
  registerDevice,
  removeDevice,
  scheduleMessage,
  sendMessage,
  threadIdOf,
  watchMessage,
  watchNotifications,
  watchReminder,
  watchRequest,
  watchRun,
  watchAccounts,
  watchThread,
  watchThreads,
  watchWaiting,
} from '../../client/outbox.js';
import type { Device, Message, NewMessage, NewReminder, Notification, Part, Reminder, Run, RunStatus, Status, Thread, Waiting, Written } from '../../client/outbox.js';

declare const db: Firestore;
const requestId = newRequestId();
const common = { requestId, accountId: 'shop', to: '+491511234567', uid: 'u1' };
const threadId: string = threadIdOf(common.accountId, common.to);

const written: Written = await sendMessage(db, { ...common, text: 'Hello' });
written.isNew satisfies boolean;
const picture: Part = { type: 'media', mediaId: 'm-1', mimeType: 'image/png' };
const message: NewMessage = { ...common, parts: [picture], sendBy: new Date() };
await scheduleMessage(db, { ...message, at: new Date() });
await cancel(db, requestId);
await markRead(db, threadId);

const stops: (() => void)[] = [
  watchMessage(db, { threadId, requestId }, (one: Message | null) => one?.status satisfies Status | undefined),
  watchThread(db, threadId, (messages) => messages[0]?.error?.code satisfies string | undefined, { last: 20 }),
  watchAccounts(db, 'u1', ([first]) => first?.role satisfies string | undefined),
  watchThreads(db, 'shop', (threads: Thread[]) => threads.length),
  watchWaiting(db, { accountId: 'shop', threadId }, ([first]: Waiting[]) => first?.isCancelling satisfies unknown),
];
stops.forEach((stop) => stop());

const reminder: NewReminder = {
  reminderId: requestId,
  accountId: 'shop',
  uid: 'u1',
  text: 'Good morning',
  targets: ['1@g.us', { id: 'vip', to: '2@g.us' }],
  timezone: 'Asia/Kuala_Lumpur',
  window: { startHour: 6, endHour: 18 },
  schedule: { type: 'once', at: new Date() },
};
(await addReminder(db, reminder)).isNew satisfies boolean;
await editReminder(db, requestId, { requestId, uid: 'u1', changes: { missed: 'runOnce', category: 'marketing' } });
await askReminder(db, requestId, { requestId, uid: 'u1', action: 'remove' });
await askRun(db, 'run', { requestId, uid: 'u1', action: 'retryFailed' });
(await listRuns(db, 'shop', { last: 5 }))[0]?.status satisfies RunStatus | undefined;
watchRun(db, 'run', (run: Run | null) => run?.counts?.['sent'] satisfies number | undefined);
watchReminder(db, requestId, (found: Reminder | null) => found?.problem satisfies string | null | undefined);
watchRequest(db, { runId: 'run', requestId }, (asked) => asked?.outcome satisfies string | null | undefined);
const device: Device = { accountId: 'shop', uid: 'u1', token: 't' };
(await registerDevice(db, { ...device, platform: 'web' })).deviceId satisfies string;
await removeDevice(db, device);
watchNotifications(db, 'shop', ([newest]: Notification[]) => newest?.title satisfies string | undefined, { last: 5 });
// @ts-expect-error: a device has a token
await registerDevice(db, { accountId: 'shop', uid: 'u1' });
// @ts-expect-error: a run is not removed
await askRun(db, 'run', { requestId, uid: 'u1', action: 'remove' });

try {
  await cancel(db, requestId);
} catch (error) {
  if (error instanceof OutboxError && error.code === 'not-allowed') throw error;
  // @ts-expect-error: there is no such code
  if (error instanceof OutboxError && error.code === 'oops') throw error;
}

// @ts-expect-error: the id is made once for an action, by the caller
await sendMessage(db, { accountId: 'shop', to: 'x', uid: 'u1', text: 'Hello' });
// @ts-expect-error: neither text nor parts
await sendMessage(db, common);
// @ts-expect-error: both
await sendMessage(db, { ...common, text: 'Hello', parts: [picture] });
// @ts-expect-error: no such part
await sendMessage(db, { ...common, parts: [{ type: 'poll' }] });
// @ts-expect-error: a time is missing
await scheduleMessage(db, { ...common, text: 'Hello' });
// @ts-expect-error: a time is a Date
await scheduleMessage(db, { ...common, text: 'Hello', at: '2030-01-01' });
