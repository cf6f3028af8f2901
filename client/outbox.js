/**
 * Send a message from a web app, send it later, cancel it, watch it.
 *
 * A message is three documents written in one batch: its thread, the message, and its outbox document. The worker does
 * the rest (pace, retries, receipts), and moves the message's `status` forward: queued, sent, delivered, read; or
 * failed, skipped, cancelled.
 *
 * One action, one message. Make the `requestId` when the action begins (a draft is opened, a button is shown), not when
 * it is carried out: a double click, a retry, a second tab or a queue that was flushed twice then write the same
 * documents, and the security rules allow them to be created once. The second caller gets `isNew: false`, which is
 * success.
 *
 * Offline. The SDK shows a write at once and sends it when there is a connection, so `sendMessage` stays pending while
 * offline, as every write of the SDK does. Do not await it before you clear the input. `watchThread` shows the message
 * with `isPending`. With a persistent cache it survives a closed page.
 *
 *     const requestId = newRequestId();                       // once for this draft
 *     sendMessage(db, { requestId, accountId, to, text: 'Hello', uid }).catch(show);
 *     const stop = watchThread(db, threadIdOf(accountId, to), render);
 */

import { Timestamp, doc, serverTimestamp, updateDoc, writeBatch } from 'firebase/firestore';

import { OutboxError, checked, codeOf, isSame, shownText, threadIdOf } from './message.js';
import { readable } from './watch.js';

/** @import { DocumentReference, Firestore } from 'firebase/firestore' */
/** @import { Checked, Identity } from './message.js' */
/** @typedef {import('./message.js').Part} Part */
/** @typedef {import('./message.js').NewMessage} NewMessage */
/** @typedef {import('./message.js').ScheduledMessage} ScheduledMessage */
/** @typedef {import('./watch.js').Status} Status */
/** @typedef {import('./watch.js').Message} Message */
/** @typedef {import('./watch.js').Thread} Thread */
/** @typedef {import('./watch.js').Waiting} Waiting */
/** @typedef {import('./files.js').FileLink} FileLink */
/** @typedef {import('./files.js').FilesService} FilesService */
/** @typedef {import('./files.js').NewFile} NewFile */
/** @typedef {import('./notifications.js').Device} Device */
/** @typedef {import('./notifications.js').Notification} Notification */
/** @typedef {import('./campaigns.js').Changes} Changes */
/** @typedef {import('./campaigns.js').NewReminder} NewReminder */
/** @typedef {import('./campaigns.js').Reminder} Reminder */
/** @typedef {import('./campaigns.js').Request} Request */
/** @typedef {import('./campaigns.js').Run} Run */
/** @typedef {import('./campaigns.js').RunStatus} RunStatus */
/** @typedef {import('./campaigns.js').Schedule} Schedule */
/** @typedef {import('./campaigns.js').Target} Target */

export { OutboxError, threadIdOf };
export { addReminder, askReminder, askRun, editReminder, listRuns, watchReminder, watchRequest, watchRun } from './campaigns.js';
export { fileLink, uploadFile } from './files.js';
export { registerDevice, removeDevice, watchNotifications } from './notifications.js';
export { watchAccounts, watchMessage, watchThread, watchThreads, watchWaiting } from './watch.js';

/**
 * @typedef {object} Written
 * @property {string} requestId
 * @property {string} threadId
 * @property {boolean} isNew  False: the same message was stored before.
 */

/**
 * Make the id of one user action. Use the same id for each retry of the action.
 *
 * @returns {string}
 */
export function newRequestId() {
  return crypto.randomUUID();
}

/**
 * Send a message as soon as its account's pace allows. The promise resolves when the server has stored the message;
 * while offline it stays pending.
 *
 * @param {Firestore} db
 * @param {NewMessage} message
 * @returns {Promise<Written>}
 */
export async function sendMessage(db, message) {
  if ('at' in message) throw new OutboxError('invalid-message', 'a time to send at is for scheduleMessage');
  return once(db, checked(message));
}

/**
 * Send a message at a time, up to 365 days ahead. It can be cancelled until then.
 *
 * @param {Firestore} db
 * @param {ScheduledMessage} message
 * @returns {Promise<Written>}
 */
export async function scheduleMessage(db, message) {
  if (!message.at) throw new OutboxError('invalid-message', 'at is missing: the time to send at');
  return once(db, checked(message));
}

/**
 * Cancel a message. If it is still queued, it becomes `cancelled` at once; otherwise nothing changes. Watch the message
 * to see which.
 *
 * @param {Firestore} db
 * @param {string} requestId
 * @returns {Promise<void>}
 */
export async function cancel(db, requestId) {
  const outbox = doc(db, 'outbox', requestId);
  try {
    await requestCancel(db, outbox);
  } catch (error) {
    const code = codeOf(error);
    if (code !== 'permission-denied' && code !== 'not-found') throw error;
    if (code === 'not-found' || (await readable(outbox))?.exists() === false) {
      throw new OutboxError('not-found', `there is no message ${requestId}`, error);
    }
    throw new OutboxError('not-allowed', `this user may not cancel ${requestId}`, error);
  }
}

/**
 * The wish, and a document that calls a function to grant it now. Where that document exists already, or the rules do
 * not know it, the wish alone is enough: the worker's next turn or sweep grants it.
 *
 * @param {Firestore} db
 * @param {DocumentReference} outbox
 * @returns {Promise<void>}
 */
async function requestCancel(db, outbox) {
  const batch = writeBatch(db);
  batch.update(outbox, { cancelRequested: true });
  batch.set(doc(db, 'cancels', outbox.id), { createdAt: serverTimestamp() });
  try {
    await batch.commit();
  } catch (error) {
    if (codeOf(error) !== 'permission-denied') throw error;
    await updateDoc(outbox, { cancelRequested: true });
  }
}

/**
 * Mark a conversation as read.
 *
 * @param {Firestore} db
 * @param {string} threadId
 * @returns {Promise<void>}
 */
export async function markRead(db, threadId) {
  await updateDoc(doc(db, 'threads', threadId), { unreadCount: 0 });
}

// --- writing

/** Writes under way, so that a second call joins the first: by database, then by requestId.
 *  @type {WeakMap<Firestore, Map<string, { identity: Identity, written: Promise<Written> }>>} */
const underWay = new WeakMap();

/**
 * @param {Firestore} db
 * @param {Checked} message
 * @returns {Promise<Written>}
 */
async function once(db, message) {
  const { identity } = message;
  /** @type {Map<string, { identity: Identity, written: Promise<Written> }>} */
  const writes = underWay.get(db) ?? new Map();
  underWay.set(db, writes);
  const first = writes.get(identity.requestId);
  if (first) {
    if (!isSame(first.identity, identity)) throw taken(identity);
    return { ...(await first.written), isNew: false };
  }
  const written = write(db, message).finally(() => writes.delete(identity.requestId));
  writes.set(identity.requestId, { identity, written });
  return written;
}

/**
 * @param {Firestore} db
 * @param {Checked} message
 * @returns {Promise<Written>}
 */
async function write(db, { identity, uid, at, sendBy, priority }) {
  const { requestId, accountId, threadId, to, parts } = identity;
  const now = serverTimestamp();
  const batch = writeBatch(db);
  batch.set(
    doc(db, 'threads', threadId),
    { accountId, to, lastMessageAt: now, lastMessageText: shownText(parts) },
    { merge: true },
  );
  batch.set(doc(db, 'threads', threadId, 'messages', requestId), {
    ...identity,
    direction: 'outbound',
    status: 'queued',
    createdAt: now,
  });
  batch.set(doc(db, 'outbox', requestId), {
    ...identity,
    status: 'queued',
    createdAt: now,
    createdBy: uid,
    nextAttemptAt: at ? Timestamp.fromDate(at) : now,
    attempts: 0,
    ...(sendBy && { sendBy: Timestamp.fromDate(sendBy) }),
    ...(priority && { priority }),
  });
  try {
    await batch.commit();
  } catch (error) {
    if (codeOf(error) !== 'permission-denied') throw error;
    await requireThere(db, identity, at, error);
    return { requestId, threadId, isNew: false };
  }
  return { requestId, threadId, isNew: true };
}

/**
 * Rules refuse a second creation as they refuse a stranger. The stored documents show which it was.
 *
 * @param {Firestore} db
 * @param {Identity} identity
 * @param {Date | null} at
 * @param {unknown} refusal
 */
async function requireThere(db, identity, at, refusal) {
  const { accountId, threadId, requestId } = identity;
  const message = await readable(doc(db, 'threads', threadId, 'messages', requestId));
  if (message?.exists()) {
    if (isSame(message.data(), identity)) return;
    throw taken(identity, refusal);
  }
  const outbox = await readable(doc(db, 'outbox', requestId));
  // A member may read a free id. Where a member may not, the id is another account's.
  if (outbox?.exists() || (message && !outbox)) throw taken(identity, refusal);
  if (at && at.getTime() <= Date.now()) {
    throw new OutboxError('too-late', 'the time to send at passed before the message reached the server; ask for another time', refusal);
  }
  throw new OutboxError('not-allowed', `this user may not send from the account ${accountId}`, refusal);
}

/**
 * @param {Identity} identity
 * @param {unknown} [cause]
 */
function taken({ requestId }, cause) {
  return new OutboxError('request-id-taken', `another message has the requestId ${requestId}; make a new one`, cause);
}
