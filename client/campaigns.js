/**
 * Reminders and runs from a web app: add a reminder, edit, pause, resume or remove it, follow its runs and steer them.
 *
 * A reminder says what to send to whom, when, and within which hours; each time it fires, it makes a run. The app writes
 * the reminder itself. After that it writes requests, which the worker carries out in the order of their arrival; the
 * outcome of each appears in its document (`watchRequest`).
 *
 * One action, one document: make the id when the action begins, as for a message. Offline, everything is written when
 * there is a connection again. A request that arrives more than ten minutes after it was asked for is ignored.
 *
 *     await addReminder(db, { reminderId: newRequestId(), accountId, uid, text: 'Good morning', targets, timezone,
 *       window: { startHour: 6, endHour: 18 }, schedule: { type: 'once', at: new Date() } });
 *     const stop = watchRun(db, runId, render);
 *     await askRun(db, runId, { requestId: newRequestId(), uid, action: 'pause' });
 */

import { Timestamp, collection, doc, getDocs, limit, onSnapshot, orderBy, query, serverTimestamp, setDoc, where } from 'firebase/firestore';

import { ACCOUNT_ID, OutboxError, checkedParts, codeOf, inOrder, invalid, requireDate, requireRule, requireText } from './message.js';
import { dateOf, ended, readable, report } from './watch.js';

/** @import { DocumentReference, DocumentSnapshot, Firestore, Unsubscribe } from 'firebase/firestore' */
/** @import { Part } from './message.js' */

const MAX_TARGETS = 5000;
const LAST_RUNS = 50;
const SCHEDULES = ['once', 'cron', 'rrule'];

/** @type {import('./message.js').Rule} */
const REMINDER_ID = {
  pattern: /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/,
  words: 'must be 1 to 100 of A-Z, a-z, 0-9, _ and -, with a letter or a digit in front',
};

/**
 * @typedef {string | { id: string, to: string, timezone?: string, variables?: Record<string, string> }} Target  An address, alone or with a name, a time zone and variables.
 * @typedef {{ startHour: number, endHour: number }} Hours  Delivery hours: from 0 to 23, until 1 to 24; 22 to 6 spans midnight.
 * @typedef {{ type: 'once', at: Date } | { type: 'cron', cron: string } | { type: 'rrule', rrule: string, start: Date }} Schedule
 */

/**
 * What an edit may change.
 *
 * @typedef {object} Changes
 * @property {Part[]} [parts]
 * @property {Target[]} [targets]
 * @property {string} [timezone]  Such as Asia/Kuala_Lumpur.
 * @property {Hours} [window]  6 to 18 if absent.
 * @property {Schedule} [schedule]
 * @property {'stop' | 'resumeNextDay'} [onWindowEnd]
 * @property {'skip' | 'runOnce'} [missed]
 * @property {'utility' | 'marketing'} [category]  The account's frequency cap counts marketing alone; utility if absent.
 */

/**
 * @typedef {object} Named
 * @property {string} reminderId  Made once for one action of the user, for instance with `newRequestId()`.
 * @property {string} accountId
 * @property {string} uid  The signed-in user.
 * @property {Target[]} targets  1 to 5,000.
 * @property {string} timezone
 * @property {Schedule} schedule
 */

/**
 * @typedef {Named & Omit<Changes, 'parts'> & ({ text: string, parts?: undefined } | { parts: Part[], text?: undefined })} NewReminder
 */

/**
 * @typedef {object} Reminder
 * @property {string} id
 * @property {string} accountId
 * @property {'active' | 'paused' | 'ended'} status
 * @property {string | null} problem  Why it cannot fire; null if it can.
 * @property {Date | null} nextFireAt
 * @property {string | null} lastRunId
 * @property {boolean} isPending  The server has not stored it yet.
 */

/**
 * @typedef {'pending' | 'running' | 'paused' | 'success' | 'partial' | 'failed' | 'cancelled'} RunStatus
 */

/**
 * A run as people see it.
 *
 * @typedef {object} Run
 * @property {string} id
 * @property {string} accountId
 * @property {string | null} reminderId
 * @property {RunStatus} status
 * @property {string | null} requested  What was asked for and is not done yet: pause, resume, cancel.
 * @property {number} total  Targets found so far.
 * @property {Record<string, number> | null} counts  By status; null before the first count. Refreshed every 5 to 60 seconds while the run goes on.
 * @property {Date | null} countedAt
 * @property {Record<string, Record<string, number>>} reasons  Why messages failed or were skipped: status, error code, how many.
 * @property {string[]} waitsFor  What it waits for, in sentences; empty at the end.
 * @property {string[]} overlaps  Other runs of the account that share its pace now.
 * @property {{ endsAt: Date | null, warning: string | null } | null} forecast
 * @property {string | null} errorSummary  At the end, if not all were sent: what happened, in a sentence.
 * @property {Date | null} fireAt
 * @property {Date | null} windowEndAt
 * @property {Date | null} finishedAt
 */

/**
 * @typedef {object} Request
 * @property {string} action
 * @property {'applied' | 'ignored' | 'refused' | null} outcome  Null until the worker has looked at it.
 * @property {string | null} reason  Why it was ignored or refused.
 */

/**
 * Add a reminder. The promise resolves when the server has stored it. The same reminder a second time changes nothing.
 *
 * @param {Firestore} db
 * @param {NewReminder} reminder
 * @returns {Promise<{ reminderId: string, isNew: boolean }>}
 */
export async function addReminder(db, { reminderId, accountId, uid, text, parts, ...rest }) {
  requireRule('reminderId', reminderId, REMINDER_ID);
  requireRule('accountId', accountId, ACCOUNT_ID);
  requireText('uid', uid, 128);
  if ((text === undefined) === (parts === undefined)) throw invalid('a reminder has either text or parts');
  for (const name of /** @type {const} */ (['targets', 'timezone', 'schedule'])) {
    if (rest[name] === undefined) throw invalid(`${name} is missing`);
  }
  const given = { ...rest, parts: text === undefined ? parts : [{ type: /** @type {const} */ ('text'), text }] };
  const fields = { accountId, ...checkedChanges(given) };
  const reference = doc(db, 'reminders', reminderId);
  const isNew = await createOnce(
    reference,
    { ...fields, status: 'active', createdAt: serverTimestamp(), createdBy: uid },
    (stored) => Object.entries(fields).every(([name, value]) => inOrder(stored[name]) === inOrder(value)),
  );
  return { reminderId, isNew };
}

/**
 * Ask the worker to change a reminder. What is wrong with the changes is the request's outcome.
 *
 * @param {Firestore} db
 * @param {string} reminderId
 * @param {{ requestId: string, uid: string, changes: Changes }} edit
 * @returns {Promise<{ requestId: string, isNew: boolean }>}
 */
export async function editReminder(db, reminderId, { requestId, uid, changes }) {
  return ask(doc(db, 'reminders', reminderId, 'requests', requestId), uid, { action: 'edit', changes: checkedChanges(changes) });
}

/**
 * Ask the worker to pause, resume or remove a reminder. Runs that have begun go on.
 *
 * @param {Firestore} db
 * @param {string} reminderId
 * @param {{ requestId: string, uid: string, action: 'pause' | 'resume' | 'remove' }} asked
 * @returns {Promise<{ requestId: string, isNew: boolean }>}
 */
export async function askReminder(db, reminderId, { requestId, uid, action }) {
  return ask(doc(db, 'reminders', reminderId, 'requests', requestId), uid, { action });
}

/**
 * Ask the worker to pause, resume or cancel a run, or to try again what failed in it.
 *
 * @param {Firestore} db
 * @param {string} runId
 * @param {{ requestId: string, uid: string, action: 'pause' | 'resume' | 'cancel' | 'retryFailed' }} asked
 * @returns {Promise<{ requestId: string, isNew: boolean }>}
 */
export async function askRun(db, runId, { requestId, uid, action }) {
  return ask(doc(db, 'runs', runId, 'requests', requestId), uid, { action });
}

/**
 * Follow a run. `onRun` gets null while there is none.
 *
 * @param {Firestore} db
 * @param {string} runId
 * @param {(run: Run | null) => void} onRun
 * @param {(error: Error) => void} [onError]  The watch has ended.
 * @returns {Unsubscribe}
 */
export function watchRun(db, runId, onRun, onError = report) {
  return onSnapshot(doc(db, 'runs', runId), (found) => onRun(found.exists() ? runOf(found) : null), ended(onError));
}

/**
 * Follow a reminder. `onReminder` gets null while there is none, and after it was removed.
 *
 * @param {Firestore} db
 * @param {string} reminderId
 * @param {(reminder: Reminder | null) => void} onReminder
 * @param {(error: Error) => void} [onError]  The watch has ended.
 * @returns {Unsubscribe}
 */
export function watchReminder(db, reminderId, onReminder, onError = report) {
  return onSnapshot(
    doc(db, 'reminders', reminderId),
    { includeMetadataChanges: true },
    (found) => onReminder(found.exists() ? reminderOf(found) : null),
    ended(onError),
  );
}

/**
 * Follow what became of a request.
 *
 * @param {Firestore} db
 * @param {{ reminderId: string, requestId: string } | { runId: string, requestId: string }} which
 * @param {(request: Request | null) => void} onRequest
 * @param {(error: Error) => void} [onError]  The watch has ended.
 * @returns {Unsubscribe}
 */
export function watchRequest(db, which, onRequest, onError = report) {
  const parent = 'runId' in which ? ['runs', which.runId] : ['reminders', which.reminderId];
  return onSnapshot(
    doc(db, parent.join('/'), 'requests', which.requestId),
    (found) => {
      const data = found.data();
      onRequest(data ? { action: data.action, outcome: data.outcome ?? null, reason: data.outcomeReason ?? null } : null);
    },
    ended(onError),
  );
}

/**
 * The account's latest runs, the newest first.
 *
 * @param {Firestore} db
 * @param {string} accountId
 * @param {{ last?: number }} [options]
 * @returns {Promise<Run[]>}
 */
export async function listRuns(db, accountId, { last = LAST_RUNS } = {}) {
  const newest = query(
    collection(db, 'runs'),
    where('accountId', '==', accountId),
    orderBy('createdAt', 'desc'),
    limit(last),
  );
  return (await getDocs(newest)).docs.map(runOf);
}

// --- checking

/**
 * @param {Changes} changes
 * @returns {Record<string, unknown>}
 */
function checkedChanges({ parts, targets, timezone, window, schedule, onWindowEnd, missed, category, ...others }) {
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined) throw invalid(`${unknown} is unknown`);
  /** @type {Record<string, unknown>} */
  const given = {
    parts: parts === undefined ? parts : checkedParts(parts),
    targets: targets === undefined ? targets : checkedTargets(targets),
    timezone,
    window: window === undefined ? window : checkedHours(window),
    schedule: schedule === undefined ? schedule : checkedSchedule(schedule),
    onWindowEnd,
    missed,
    category,
  };
  if (timezone !== undefined) requireText('timezone', timezone, 100);
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

/** @param {Target[]} targets */
function checkedTargets(targets) {
  if (!Array.isArray(targets)) throw invalid('targets must be a list');
  if (targets.length === 0) throw invalid('targets is empty');
  if (targets.length > MAX_TARGETS) {
    throw invalid(`targets has ${targets.length.toLocaleString('en-US')} entries; at most 5,000 are allowed here, in several reminders more`);
  }
  return targets;
}

/** @param {Hours} hours */
function checkedHours({ startHour, endHour }) {
  requireHour('window.startHour', startHour, 0, 23);
  requireHour('window.endHour', endHour, 1, 24);
  if (startHour === endHour) throw invalid('window: startHour and endHour are the same; for the whole day use 0 and 24');
  return { startHour, endHour };
}

/**
 * @param {string} name
 * @param {unknown} value
 * @param {number} least
 * @param {number} most
 */
function requireHour(name, value, least, most) {
  if (!Number.isInteger(value) || Number(value) < least || Number(value) > most) {
    throw invalid(`${name} must be a whole hour from ${least} to ${most}`);
  }
}

/** @param {Schedule} schedule */
function checkedSchedule(schedule) {
  if (!SCHEDULES.includes(schedule?.type)) throw invalid('schedule.type must be once, cron or rrule');
  if (schedule.type === 'once') requireDate('schedule.at', schedule.at);
  if (schedule.type === 'rrule') requireDate('schedule.start', schedule.start);
  return Object.fromEntries(
    Object.entries(schedule).map(([name, value]) => [name, value instanceof Date ? Timestamp.fromDate(value) : value]),
  );
}

// --- writing

/**
 * @param {DocumentReference} reference
 * @param {string} uid
 * @param {{ action: string, changes?: Record<string, unknown> }} asked
 */
async function ask(reference, uid, asked) {
  requireText('uid', uid, 128);
  const fields = { ...asked, createdBy: uid, createdAt: serverTimestamp(), askedAt: Timestamp.now() };
  const isNew = await createOnce(reference, fields, (stored) => stored.action === asked.action && stored.createdBy === uid);
  return { requestId: reference.id, isNew };
}

/**
 * Rules allow a document to be created once. False: it was there, and is the same.
 *
 * @param {DocumentReference} reference
 * @param {Record<string, unknown>} fields
 * @param {(stored: Record<string, any>) => boolean} isSame
 */
export async function createOnce(reference, fields, isSame) {
  try {
    await setDoc(reference, fields);
    return true;
  } catch (error) {
    if (codeOf(error) !== 'permission-denied') throw error;
    const found = await readable(reference);
    if (!found?.exists()) throw new OutboxError('not-allowed', `this user may not write ${reference.path}`, error);
    if (isSame(found.data())) return false;
    throw new OutboxError('request-id-taken', `${reference.path} is another one; make a new id`, error);
  }
}

// --- reading

/**
 * @param {DocumentSnapshot} snapshot
 * @returns {Run}
 */
function runOf(snapshot) {
  const data = snapshot.data({ serverTimestamps: 'estimate' }) ?? {};
  const { forecast } = data;
  return {
    id: snapshot.id,
    accountId: data.accountId,
    reminderId: data.reminderId ?? null,
    status: data.status,
    requested: data.requested ?? null,
    total: data.total ?? 0,
    counts: data.counts ?? null,
    countedAt: dateOf(data.countedAt),
    reasons: data.reasons ?? {},
    waitsFor: data.waitsFor ?? [],
    overlaps: data.overlaps ?? [],
    forecast: forecast ? { endsAt: dateOf(forecast.endsAt), warning: forecast.warning ?? null } : null,
    errorSummary: data.errorSummary ?? null,
    fireAt: dateOf(data.fireAt),
    windowEndAt: dateOf(data.windowEndAt),
    finishedAt: dateOf(data.finishedAt),
  };
}

/**
 * @param {DocumentSnapshot} snapshot
 * @returns {Reminder}
 */
function reminderOf(snapshot) {
  const data = snapshot.data({ serverTimestamps: 'estimate' }) ?? {};
  return {
    id: snapshot.id,
    accountId: data.accountId,
    status: data.status,
    problem: data.problem ?? null,
    nextFireAt: dateOf(data.nextFireAt),
    lastRunId: data.lastRunId ?? null,
    isPending: snapshot.metadata.hasPendingWrites,
  };
}
