// What a frontend in TypeScript writes. It is compiled, never run: a line that must not compile says so.

import type { Firestore } from 'firebase/firestore';

import {
  OutboxError,
  cancel,
  markRead,
  newRequestId,
  scheduleMessage,
  sendMessage,
  threadIdOf,
  watchMessage,
  watchThread,
  watchThreads,
  watchWaiting,
} from '../../client/outbox.js';
import type { Message, NewMessage, Part, Status, Thread, Waiting, Written } from '../../client/outbox.js';

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
  watchThreads(db, 'shop', (threads: Thread[]) => threads.length),
  watchWaiting(db, { accountId: 'shop', threadId }, ([first]: Waiting[]) => first?.isCancelling satisfies unknown),
];
stops.forEach((stop) => stop());

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
