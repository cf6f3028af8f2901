/**
 * Watch messages, conversations and the outbox, as plain values. Each watch goes on until the function that it returned
 * is called, or until it ends with an error.
 */

import { Timestamp, collection, collectionGroup, doc, getDocFromServer, limit, onSnapshot, orderBy, query, where } from 'firebase/firestore';

import { OutboxError, codeOf } from './message.js';

/** @import { DocumentReference, DocumentSnapshot, Firestore, Unsubscribe } from 'firebase/firestore' */
/** @import { Part } from './message.js' */

const LAST_MESSAGES = 100;

/**
 * @typedef {'queued' | 'sent' | 'delivered' | 'read' | 'failed' | 'skipped' | 'cancelled'} Status
 */

/**
 * A message as people see it, outbound or inbound.
 *
 * @typedef {object} Message
 * @property {string} id  The requestId of an outbound message.
 * @property {string} threadId
 * @property {'outbound' | 'inbound'} direction
 * @property {Part[]} parts
 * @property {Status} status
 * @property {boolean} isPending  The server has not stored it yet: this device is offline, or was until now.
 * @property {Date | null} createdAt
 * @property {Date | null} sentAt
 * @property {Date | null} deliveredAt
 * @property {Date | null} readAt
 * @property {Date | null} failedAt
 * @property {{ code: string, message: string } | null} error  Why it failed or was skipped.
 * @property {boolean} hasFiles  Whether the files that it names can be shown: those of others are fetched first.
 */

/**
 * @typedef {object} Thread
 * @property {string} id
 * @property {string} accountId
 * @property {string} to
 * @property {Date | null} lastMessageAt
 * @property {string} lastMessageText
 * @property {number} unreadCount
 */

/**
 * @typedef {object} Membership
 * @property {string} accountId
 * @property {'owner' | 'agent' | 'viewer'} role
 */

/**
 * A message that is still to be sent, as the worker sees it.
 *
 * @typedef {object} Waiting
 * @property {string} requestId
 * @property {'queued' | 'sending' | 'uncertain'} status  Uncertain: perhaps sent; a receipt or an operator decides.
 * @property {Date | null} at  The earliest time: the scheduled time, or that of the next try.
 * @property {number} attempts
 * @property {{ code: string, message: string } | null} lastError  Why the last try did not succeed.
 * @property {boolean} isCancelling  Cancelling was requested, and the worker has not done it yet.
 */

/**
 * Follow one message. `onMessage` gets null while there is none.
 *
 * @param {Firestore} db
 * @param {{ threadId: string, requestId: string }} which
 * @param {(message: Message | null) => void} onMessage
 * @param {(error: Error) => void} [onError]  The watch has ended.
 * @returns {Unsubscribe}
 */
export function watchMessage(db, { threadId, requestId }, onMessage, onError = report) {
  return onSnapshot(
    doc(db, 'threads', threadId, 'messages', requestId),
    { includeMetadataChanges: true },
    (snapshot) => onMessage(snapshot.exists() ? messageOf(snapshot, threadId) : null),
    ended(onError),
  );
}

/**
 * Follow the last messages of a conversation, oldest first.
 *
 * @param {Firestore} db
 * @param {string} threadId
 * @param {(messages: Message[]) => void} onMessages
 * @param {{ last?: number, onError?: (error: Error) => void }} [options]
 * @returns {Unsubscribe}
 */
export function watchThread(db, threadId, onMessages, { last = LAST_MESSAGES, onError = report } = {}) {
  const messages = collection(db, 'threads', threadId, 'messages');
  return onSnapshot(
    query(messages, orderBy('createdAt', 'desc'), limit(last)),
    { includeMetadataChanges: true },
    (snapshot) => onMessages(snapshot.docs.map((found) => messageOf(found, threadId)).reverse()),
    ended(onError),
  );
}

/**
 * Follow which accounts the signed-in user is a member of, by accountId.
 *
 * @param {Firestore} db
 * @param {string} uid  Of the signed-in user: the rules allow no other.
 * @param {(accounts: Membership[]) => void} onAccounts
 * @param {{ onError?: (error: Error) => void }} [options]
 * @returns {Unsubscribe}
 */
export function watchAccounts(db, uid, onAccounts, { onError = report } = {}) {
  return onSnapshot(
    query(collectionGroup(db, 'members'), where('uid', '==', uid)),
    (snapshot) => onAccounts(snapshot.docs.filter(isOfAccount).map(membershipOf).sort(byAccount)),
    ended(onError),
  );
}

/**
 * Follow an account's conversations, the latest first.
 *
 * @param {Firestore} db
 * @param {string} accountId
 * @param {(threads: Thread[]) => void} onThreads
 * @param {{ last?: number, onError?: (error: Error) => void }} [options]
 * @returns {Unsubscribe}
 */
export function watchThreads(db, accountId, onThreads, { last = LAST_MESSAGES, onError = report } = {}) {
  return onSnapshot(
    query(
      collection(db, 'threads'),
      where('accountId', '==', accountId),
      orderBy('lastMessageAt', 'desc'),
      limit(last),
    ),
    (snapshot) => onThreads(snapshot.docs.map(threadOf)),
    ended(onError),
  );
}

/**
 * Follow what is still to be sent in a conversation: until when it waits, and why.
 *
 * @param {Firestore} db
 * @param {{ accountId: string, threadId: string }} which
 * @param {(waiting: Waiting[]) => void} onWaiting
 * @param {{ onError?: (error: Error) => void }} [options]
 * @returns {Unsubscribe}
 */
export function watchWaiting(db, { accountId, threadId }, onWaiting, { onError = report } = {}) {
  return onSnapshot(
    query(
      collection(db, 'outbox'),
      where('accountId', '==', accountId),
      where('threadId', '==', threadId),
      where('status', 'in', ['queued', 'sending', 'uncertain']), // no limit: with one, Google's emulator misses documents that leave
    ),
    (snapshot) => onWaiting(snapshot.docs.map(waitingOf)),
    ended(onError),
  );
}

/**
 * @param {DocumentSnapshot} snapshot
 * @param {string} threadId
 * @returns {Message}
 */
function messageOf(snapshot, threadId) {
  // A time that the server has not set yet is estimated by this device's clock.
  const data = snapshot.data({ serverTimestamps: 'estimate' }) ?? {};
  return {
    id: snapshot.id,
    threadId,
    direction: data.direction,
    parts: data.parts ?? [],
    status: data.status,
    isPending: snapshot.metadata.hasPendingWrites,
    createdAt: dateOf(data.createdAt),
    sentAt: dateOf(data.sentAt),
    deliveredAt: dateOf(data.deliveredAt),
    readAt: dateOf(data.readAt),
    failedAt: dateOf(data.failedAt),
    error: data.error ?? null,
    hasFiles: data.direction === 'outbound' || data.filesStoredAt !== undefined,
  };
}

/**
 * @param {DocumentSnapshot} snapshot
 * @returns {Thread}
 */
function threadOf(snapshot) {
  const data = snapshot.data({ serverTimestamps: 'estimate' }) ?? {};
  return {
    id: snapshot.id,
    accountId: data.accountId,
    to: data.to,
    lastMessageAt: dateOf(data.lastMessageAt),
    lastMessageText: data.lastMessageText ?? '',
    unreadCount: data.unreadCount ?? 0,
  };
}

/**
 * @param {DocumentSnapshot} snapshot
 * @returns {Waiting}
 */
function waitingOf(snapshot) {
  const data = snapshot.data({ serverTimestamps: 'estimate' }) ?? {};
  return {
    requestId: snapshot.id,
    status: data.status,
    at: dateOf(data.nextAttemptAt),
    attempts: data.attempts ?? 0,
    lastError: data.lastError ? { code: data.lastError.code, message: data.lastError.message } : null,
    isCancelling: data.cancelRequested === true,
  };
}

/**
 * Whether it is a member of an account: a project may have other collections of this name.
 *
 * @param {DocumentSnapshot} snapshot
 */
function isOfAccount(snapshot) {
  return snapshot.ref.parent.parent?.parent.path === 'accounts';
}

/**
 * @param {DocumentSnapshot} snapshot
 * @returns {Membership}
 */
function membershipOf(snapshot) {
  return { accountId: String(snapshot.ref.parent.parent?.id), role: snapshot.get('role') };
}

/**
 * @param {Membership} one
 * @param {Membership} other
 */
function byAccount(one, other) {
  return one.accountId < other.accountId ? -1 : 1;
}

/**
 * The document, or null where this user may not read it.
 *
 * @param {DocumentReference} reference
 */
export async function readable(reference) {
  try {
    return await getDocFromServer(reference);
  } catch (error) {
    if (codeOf(error) === 'permission-denied') return null;
    throw error;
  }
}

/**
 * @param {unknown} value
 * @returns {Date | null}
 */
export function dateOf(value) {
  return value instanceof Timestamp ? value.toDate() : null;
}

/**
 * A watch ends with an error; a refusal becomes an OutboxError.
 *
 * @param {(error: Error) => void} onError
 * @returns {(error: Error) => void}
 */
export function ended(onError) {
  return (error) => {
    const isRefused = codeOf(error) === 'permission-denied';
    onError(isRefused ? new OutboxError('not-allowed', 'this user is not a member of the account', error) : error);
  };
}

/** @param {Error} error */
export function report(error) {
  console.error('the watch has ended:', error);
}
