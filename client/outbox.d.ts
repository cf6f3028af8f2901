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
export function newRequestId(): string;
/**
 * Send a message as soon as its account's pace allows. The promise resolves when the server has stored the message;
 * while offline it stays pending.
 *
 * @param {Firestore} db
 * @param {NewMessage} message
 * @returns {Promise<Written>}
 */
export function sendMessage(db: Firestore, message: NewMessage): Promise<Written>;
/**
 * Send a message at a time, up to 365 days ahead. It can be cancelled until then.
 *
 * @param {Firestore} db
 * @param {ScheduledMessage} message
 * @returns {Promise<Written>}
 */
export function scheduleMessage(db: Firestore, message: ScheduledMessage): Promise<Written>;
/**
 * Cancel a message. If it is still queued, it becomes `cancelled` at once; otherwise nothing changes. Watch the message
 * to see which.
 *
 * @param {Firestore} db
 * @param {string} requestId
 * @returns {Promise<void>}
 */
export function cancel(db: Firestore, requestId: string): Promise<void>;
/**
 * Mark a conversation as read.
 *
 * @param {Firestore} db
 * @param {string} threadId
 * @returns {Promise<void>}
 */
export function markRead(db: Firestore, threadId: string): Promise<void>;
export type Written = {
    requestId: string;
    threadId: string;
    /**
     * False: the same message was stored before.
     */
    isNew: boolean;
};
export type Part = import("./message.js").Part;
export type NewMessage = import("./message.js").NewMessage;
export type ScheduledMessage = import("./message.js").ScheduledMessage;
export type Status = import("./watch.js").Status;
export type Message = import("./watch.js").Message;
export type Thread = import("./watch.js").Thread;
export type Waiting = import("./watch.js").Waiting;
export type FileLink = import("./files.js").FileLink;
export type FilesService = import("./files.js").FilesService;
export type NewFile = import("./files.js").NewFile;
export type Device = import("./notifications.js").Device;
export type Notification = import("./notifications.js").Notification;
export type Changes = import("./campaigns.js").Changes;
export type NewReminder = import("./campaigns.js").NewReminder;
export type Reminder = import("./campaigns.js").Reminder;
export type Request = import("./campaigns.js").Request;
export type Run = import("./campaigns.js").Run;
export type RunStatus = import("./campaigns.js").RunStatus;
export type Schedule = import("./campaigns.js").Schedule;
export type Target = import("./campaigns.js").Target;
import type { Firestore } from 'firebase/firestore';
import { OutboxError } from './message.js';
import { threadIdOf } from './message.js';
export { OutboxError, threadIdOf };
export { addReminder, askReminder, askRun, editReminder, listRuns, watchReminder, watchRequest, watchRun } from "./campaigns.js";
export { fileLink, uploadFile } from "./files.js";
export { registerDevice, removeDevice, watchNotifications } from "./notifications.js";
export { watchAccounts, watchMessage, watchThread, watchThreads, watchWaiting } from "./watch.js";
