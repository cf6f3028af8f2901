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
export function newRequestId(): string;
/**
 * Sends a message as soon as its account's pace allows. The promise ends when the server has the message; while
 * offline it stays pending.
 *
 * @param {Firestore} db
 * @param {NewMessage} message
 * @returns {Promise<Written>}
 */
export function sendMessage(db: Firestore, message: NewMessage): Promise<Written>;
/**
 * Sends a message at a time, up to 365 days ahead. It can be taken back until then.
 *
 * @param {Firestore} db
 * @param {ScheduledMessage} message
 * @returns {Promise<Written>}
 */
export function scheduleMessage(db: Firestore, message: ScheduledMessage): Promise<Written>;
/**
 * Asks for a message to be taken back. If it is still queued it becomes `cancelled`; if it is on its way or sent,
 * nothing changes. Watch the message to see which.
 *
 * @param {Firestore} db
 * @param {string} requestId
 * @returns {Promise<void>}
 */
export function cancel(db: Firestore, requestId: string): Promise<void>;
/**
 * The conversation was looked at.
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
     * False: it was there already, with the same content.
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
import type { Firestore } from 'firebase/firestore';
import { OutboxError } from './message.js';
import { threadIdOf } from './message.js';
export { OutboxError, threadIdOf };
export { watchMessage, watchThread, watchThreads, watchWaiting } from "./watch.js";
