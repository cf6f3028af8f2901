/**
 * Notifications about runs: on this device by Firebase Cloud Messaging, and as a list that a page shows.
 *
 * The app asks the Firebase SDK for a token and registers it. From then on the worker sends "412 of 1000 delivered" to
 * the device when a run of the account ends. `data.notificationId` is the same in a repeat.
 *
 *     const token = await getToken(getMessaging(), { vapidKey });
 *     await registerDevice(db, { accountId, uid, token });
 *     await removeDevice(db, { accountId, uid, token });     // when the user signs out
 */

import { collection, deleteDoc, doc, limit, onSnapshot, orderBy, query, serverTimestamp } from 'firebase/firestore';

import { createOnce } from './campaigns.js';
import { ACCOUNT_ID, codeOf, requireRule, requireText } from './message.js';
import { dateOf, ended, report } from './watch.js';

/** @import { DocumentReference, DocumentSnapshot, Firestore, Unsubscribe } from 'firebase/firestore' */
/** @import { RunStatus } from './campaigns.js' */

const MAX_TOKEN = 4096;
const MAX_PLATFORM = 32;
const LAST_NOTIFICATIONS = 50;

/**
 * @typedef {object} Device
 * @property {string} accountId
 * @property {string} uid  The signed-in user.
 * @property {string} token  What `getToken` of the Firebase SDK gave for this device.
 */

/**
 * @typedef {object} Notification
 * @property {string} id
 * @property {'run.ended' | 'run.paused' | 'run.windowClosed'} kind
 * @property {string} runId
 * @property {string | null} reminderId
 * @property {RunStatus} status  Of the run at that time.
 * @property {string} title  Such as "412 of 1000 delivered".
 * @property {string} text  What happened, in sentences.
 * @property {number} sent
 * @property {number} total
 * @property {Date | null} createdAt
 */

/**
 * Register this device for notifications about the account's runs. The same device a second time changes nothing.
 *
 * @param {Firestore} db
 * @param {Device & { platform?: string }} device  `platform` is for people: web, android, ios.
 * @returns {Promise<{ deviceId: string, isNew: boolean }>}
 */
export async function registerDevice(db, { accountId, uid, token, platform }) {
  const reference = await deviceOf(db, { accountId, uid, token });
  if (platform !== undefined) requireText('platform', platform, MAX_PLATFORM);
  const named = platform === undefined ? {} : { platform };
  const fields = { uid, token, ...named, createdAt: serverTimestamp() };
  const isNew = await createOnce(reference, fields, (stored) => stored.token === token && stored.uid === uid);
  return { deviceId: reference.id, isNew };
}

/**
 * End notifications on this device. One that is not registered stays so.
 *
 * @param {Firestore} db
 * @param {Device} device
 * @returns {Promise<void>}
 */
export async function removeDevice(db, device) {
  try {
    await deleteDoc(await deviceOf(db, device));
  } catch (error) {
    if (codeOf(error) !== 'permission-denied') throw error; // rules refuse to delete what is not there
  }
}

/**
 * Follow the account's latest notifications, the newest first. The worker keeps them for 30 days. It writes them for
 * accounts that have a webhook for notifications or a registered device.
 *
 * @param {Firestore} db
 * @param {string} accountId
 * @param {(notifications: Notification[]) => void} onNotifications
 * @param {{ last?: number, onError?: (error: Error) => void }} [options]  After `onError` the watch has ended.
 * @returns {Unsubscribe}
 */
export function watchNotifications(db, accountId, onNotifications, { last = LAST_NOTIFICATIONS, onError = report } = {}) {
  return onSnapshot(
    query(collection(db, 'accounts', accountId, 'notifications'), orderBy('createdAt', 'desc'), limit(last)),
    (snapshot) => onNotifications(snapshot.docs.map(notificationOf)),
    ended(onError),
  );
}

/**
 * The id is the same for the same user and token, so a device that registers at every start has one document.
 *
 * @param {Firestore} db
 * @param {Device} device
 * @returns {Promise<DocumentReference>}
 */
async function deviceOf(db, { accountId, uid, token }) {
  requireRule('accountId', accountId, ACCOUNT_ID);
  requireText('uid', uid, 128);
  requireText('token', token, MAX_TOKEN);
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(JSON.stringify([uid, token])));
  const deviceId = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
  return doc(db, 'accounts', accountId, 'devices', deviceId);
}

/**
 * @param {DocumentSnapshot} snapshot
 * @returns {Notification}
 */
function notificationOf(snapshot) {
  const data = snapshot.data() ?? {};
  return {
    id: snapshot.id,
    kind: data.kind,
    runId: data.runId,
    reminderId: data.reminderId ?? null,
    status: data.status,
    title: data.title,
    text: data.text,
    sent: data.sent,
    total: data.total,
    createdAt: dateOf(data.createdAt),
  };
}
