/**
 * What a frontend imports: send a message, send it later, take it back, watch it.
 *
 * A message is three documents written in one batch: its thread, itself, and its outbox document. The rest (pace,
 * retries, receipts) is the worker's, and shows up as the message's `status`, which only ever moves forward:
 * queued, sent, delivered, read; or failed, skipped, cancelled.
 *
 * One action, one message. Make the `requestId` when the action begins (a draft is opened, a button is shown), not when
 * it is carried out: a double click, a retry, a second tab or a queue that was flushed twice then write the same
 * documents, and the security rules let them be created once. Whoever comes second is told that it is there already,
 * which is success.
 *
 * Offline. The SDK shows a write at once and sends it when there is a connection again, so `sendMessage` stays
 * pending while offline, as every write of the SDK does. Do not await it before you clear the input: watch the thread
 * instead, where the message is shown with `isPending`. With a persistent cache it outlives the page, too.
 *
 *     const requestId = newRequestId();                       // once for this draft
 *     sendMessage(db, { requestId, accountId, to, text: 'Hello', uid }).catch(show);
 *     const stop = watchThread(db, threadIdOf(accountId, to), render);
 */

import { Timestamp, doc, getDocFromServer, serverTimestamp, updateDoc, writeBatch } from 'firebase/firestore';

import { OutboxError, checked, codeOf, isSame, shownText, threadIdOf } from './message.js';

/** @import { DocumentReference, Firestore } from 'firebase/firestore' */
/** @import { Checked, Identity } from './message.js' */
/** @typedef {import('./message.js').Part} Part */
/** @typedef {import('./message.js').NewMessage} NewMessage */
/** @typedef {import('./message.js').ScheduledMessage} ScheduledMessage */
/** @typedef {import('./watch.js').Status} Status */
/** @typedef {import('./watch.js').Message} Message */
/** @typedef {import('./watch.js').Thread} Thread */
/** @typedef {import('./watch.js').Waiting} Waiting */

export { OutboxError, threadIdOf };
export { watchMessage, watchThread, watchThreads, watchWaiting } from './watch.js';

/**
 * @typedef {object} Written
 * @property {string} requestId
 * @property {string} threadId
 * @property {boolean} isNew  False: it was there already, with the same content.
 */

/**
 * An id for one action of the user. Make it once, and use it again for each retry of the same action.
 *
 * @returns {string}
 */
export function newRequestId() {
  return crypto.randomUUID();
}

/**
 * Sends a message as soon as its account's pace allows. The promise ends when the server has the message; while
 * offline it stays pending.
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
 * Sends a message at a time, up to 365 days ahead. It can be taken back until then.
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
 * Asks for a message to be taken back. If it is still queued it becomes `cancelled`; if it is on its way or sent,
 * nothing changes. Watch the message to see which.
 *
 * @param {Firestore} db
 * @param {string} requestId
 * @returns {Promise<void>}
 */
export async function cancel(db, requestId) {
  const outbox = doc(db, 'outbox', requestId);
  try {
    await updateDoc(outbox, { cancelRequested: true });
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
 * The conversation was looked at.
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
async function write(db, { identity, uid, at, sendBy }) {
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
 * Rules refuse a second creation as they refuse a stranger. What is there tells which it was.
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
    throw new OutboxError('too-late', 'its time passed before it reached the server: ask for another', refusal);
  }
  throw new OutboxError('not-allowed', `this user may not send from the account ${accountId}`, refusal);
}

/** @param {DocumentReference} reference */
async function readable(reference) {
  try {
    return await getDocFromServer(reference);
  } catch (error) {
    if (codeOf(error) === 'permission-denied') return null;
    throw error;
  }
}

/**
 * @param {Identity} identity
 * @param {unknown} [cause]
 */
function taken({ requestId }, cause) {
  return new OutboxError('request-id-taken', `another message has the requestId ${requestId}; make a new one`, cause);
}
