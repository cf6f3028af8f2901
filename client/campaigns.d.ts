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
export function addReminder(db: Firestore, { reminderId, accountId, uid, text, parts, ...rest }: NewReminder): Promise<{
    reminderId: string;
    isNew: boolean;
}>;
/**
 * Ask the worker to change a reminder. What is wrong with the changes is the request's outcome.
 *
 * @param {Firestore} db
 * @param {string} reminderId
 * @param {{ requestId: string, uid: string, changes: Changes }} edit
 * @returns {Promise<{ requestId: string, isNew: boolean }>}
 */
export function editReminder(db: Firestore, reminderId: string, { requestId, uid, changes }: {
    requestId: string;
    uid: string;
    changes: Changes;
}): Promise<{
    requestId: string;
    isNew: boolean;
}>;
/**
 * Ask the worker to pause, resume or remove a reminder. Runs that have begun go on.
 *
 * @param {Firestore} db
 * @param {string} reminderId
 * @param {{ requestId: string, uid: string, action: 'pause' | 'resume' | 'remove' }} asked
 * @returns {Promise<{ requestId: string, isNew: boolean }>}
 */
export function askReminder(db: Firestore, reminderId: string, { requestId, uid, action }: {
    requestId: string;
    uid: string;
    action: "pause" | "resume" | "remove";
}): Promise<{
    requestId: string;
    isNew: boolean;
}>;
/**
 * Ask the worker to pause, resume or cancel a run, or to try again what failed in it.
 *
 * @param {Firestore} db
 * @param {string} runId
 * @param {{ requestId: string, uid: string, action: 'pause' | 'resume' | 'cancel' | 'retryFailed' }} asked
 * @returns {Promise<{ requestId: string, isNew: boolean }>}
 */
export function askRun(db: Firestore, runId: string, { requestId, uid, action }: {
    requestId: string;
    uid: string;
    action: "pause" | "resume" | "cancel" | "retryFailed";
}): Promise<{
    requestId: string;
    isNew: boolean;
}>;
/**
 * Follow a run. `onRun` gets null while there is none.
 *
 * @param {Firestore} db
 * @param {string} runId
 * @param {(run: Run | null) => void} onRun
 * @param {(error: Error) => void} [onError]  The watch has ended.
 * @returns {Unsubscribe}
 */
export function watchRun(db: Firestore, runId: string, onRun: (run: Run | null) => void, onError?: (error: Error) => void): Unsubscribe;
/**
 * Follow a reminder. `onReminder` gets null while there is none, and after it was removed.
 *
 * @param {Firestore} db
 * @param {string} reminderId
 * @param {(reminder: Reminder | null) => void} onReminder
 * @param {(error: Error) => void} [onError]  The watch has ended.
 * @returns {Unsubscribe}
 */
export function watchReminder(db: Firestore, reminderId: string, onReminder: (reminder: Reminder | null) => void, onError?: (error: Error) => void): Unsubscribe;
/**
 * Follow what became of a request.
 *
 * @param {Firestore} db
 * @param {{ reminderId: string, requestId: string } | { runId: string, requestId: string }} which
 * @param {(request: Request | null) => void} onRequest
 * @param {(error: Error) => void} [onError]  The watch has ended.
 * @returns {Unsubscribe}
 */
export function watchRequest(db: Firestore, which: {
    reminderId: string;
    requestId: string;
} | {
    runId: string;
    requestId: string;
}, onRequest: (request: Request | null) => void, onError?: (error: Error) => void): Unsubscribe;
/**
 * The account's latest runs, the newest first.
 *
 * @param {Firestore} db
 * @param {string} accountId
 * @param {{ last?: number }} [options]
 * @returns {Promise<Run[]>}
 */
export function listRuns(db: Firestore, accountId: string, { last }?: {
    last?: number;
}): Promise<Run[]>;
/**
 * Rules allow a document to be created once. False: it was there, and is the same.
 *
 * @param {DocumentReference} reference
 * @param {Record<string, unknown>} fields
 * @param {(stored: Record<string, any>) => boolean} isSame
 */
export function createOnce(reference: DocumentReference, fields: Record<string, unknown>, isSame: (stored: Record<string, any>) => boolean): Promise<boolean>;
/**
 * An address, alone or with a name, a time zone and variables.
 */
export type Target = string | {
    id: string;
    to: string;
    timezone?: string;
    variables?: Record<string, string>;
};
/**
 * Delivery hours: from 0 to 23, until 1 to 24; 22 to 6 spans midnight.
 */
export type Hours = {
    startHour: number;
    endHour: number;
};
export type Schedule = {
    type: "once";
    at: Date;
} | {
    type: "cron";
    cron: string;
} | {
    type: "rrule";
    rrule: string;
    start: Date;
};
/**
 * What an edit may change.
 */
export type Changes = {
    parts?: Part[] | undefined;
    targets?: Target[] | undefined;
    /**
     * Such as Asia/Kuala_Lumpur.
     */
    timezone?: string | undefined;
    /**
     * 6 to 18 if absent.
     */
    window?: Hours | undefined;
    schedule?: Schedule | undefined;
    onWindowEnd?: "stop" | "resumeNextDay" | undefined;
    missed?: "skip" | "runOnce" | undefined;
    /**
     * The account's frequency cap counts marketing alone; utility if absent.
     */
    category?: "utility" | "marketing" | undefined;
};
export type Named = {
    /**
     * Made once for one action of the user, for instance with `newRequestId()`.
     */
    reminderId: string;
    accountId: string;
    /**
     * The signed-in user.
     */
    uid: string;
    /**
     * 1 to 5,000.
     */
    targets: Target[];
    timezone: string;
    schedule: Schedule;
};
export type NewReminder = Named & Omit<Changes, "parts"> & ({
    text: string;
    parts?: undefined;
} | {
    parts: Part[];
    text?: undefined;
});
export type Reminder = {
    id: string;
    accountId: string;
    status: "active" | "paused" | "ended";
    /**
     * Why it cannot fire; null if it can.
     */
    problem: string | null;
    nextFireAt: Date | null;
    lastRunId: string | null;
    /**
     * The server has not stored it yet.
     */
    isPending: boolean;
};
export type RunStatus = "pending" | "running" | "paused" | "success" | "partial" | "failed" | "cancelled";
/**
 * A run as people see it.
 */
export type Run = {
    id: string;
    accountId: string;
    reminderId: string | null;
    status: RunStatus;
    /**
     * What was asked for and is not done yet: pause, resume, cancel.
     */
    requested: string | null;
    /**
     * Targets found so far.
     */
    total: number;
    /**
     * By status; null before the first count. Refreshed every 5 to 60 seconds while the run goes on.
     */
    counts: Record<string, number> | null;
    countedAt: Date | null;
    /**
     * Why messages failed or were skipped: status, error code, how many.
     */
    reasons: Record<string, Record<string, number>>;
    /**
     * What it waits for, in sentences; empty at the end.
     */
    waitsFor: string[];
    /**
     * Other runs of the account that share its pace now.
     */
    overlaps: string[];
    forecast: {
        endsAt: Date | null;
        warning: string | null;
    } | null;
    /**
     * At the end, if not all were sent: what happened, in a sentence.
     */
    errorSummary: string | null;
    fireAt: Date | null;
    windowEndAt: Date | null;
    finishedAt: Date | null;
};
export type Request = {
    action: string;
    /**
     * Null until the worker has looked at it.
     */
    outcome: "applied" | "ignored" | "refused" | null;
    /**
     * Why it was ignored or refused.
     */
    reason: string | null;
};
import type { Firestore } from 'firebase/firestore';
import type { Unsubscribe } from 'firebase/firestore';
import type { DocumentReference } from 'firebase/firestore';
import type { Part } from './message.js';
