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
export function watchMessage(db: Firestore, { threadId, requestId }: {
    threadId: string;
    requestId: string;
}, onMessage: (message: Message | null) => void, onError?: (error: Error) => void): Unsubscribe;
/**
 * Follow the last messages of a conversation, oldest first.
 *
 * @param {Firestore} db
 * @param {string} threadId
 * @param {(messages: Message[]) => void} onMessages
 * @param {{ last?: number, onError?: (error: Error) => void }} [options]
 * @returns {Unsubscribe}
 */
export function watchThread(db: Firestore, threadId: string, onMessages: (messages: Message[]) => void, { last, onError }?: {
    last?: number;
    onError?: (error: Error) => void;
}): Unsubscribe;
/**
 * Follow which accounts the signed-in user is a member of, by accountId.
 *
 * @param {Firestore} db
 * @param {string} uid  Of the signed-in user: the rules allow no other.
 * @param {(accounts: Membership[]) => void} onAccounts
 * @param {{ onError?: (error: Error) => void }} [options]
 * @returns {Unsubscribe}
 */
export function watchAccounts(db: Firestore, uid: string, onAccounts: (accounts: Membership[]) => void, { onError }?: {
    onError?: (error: Error) => void;
}): Unsubscribe;
/**
 * Follow an account's conversations, the latest first.
 *
 * @param {Firestore} db
 * @param {string} accountId
 * @param {(threads: Thread[]) => void} onThreads
 * @param {{ last?: number, onError?: (error: Error) => void }} [options]
 * @returns {Unsubscribe}
 */
export function watchThreads(db: Firestore, accountId: string, onThreads: (threads: Thread[]) => void, { last, onError }?: {
    last?: number;
    onError?: (error: Error) => void;
}): Unsubscribe;
/**
 * Follow what is still to be sent in a conversation: until when it waits, and why.
 *
 * @param {Firestore} db
 * @param {{ accountId: string, threadId: string }} which
 * @param {(waiting: Waiting[]) => void} onWaiting
 * @param {{ onError?: (error: Error) => void }} [options]
 * @returns {Unsubscribe}
 */
export function watchWaiting(db: Firestore, { accountId, threadId }: {
    accountId: string;
    threadId: string;
}, onWaiting: (waiting: Waiting[]) => void, { onError }?: {
    onError?: (error: Error) => void;
}): Unsubscribe;
/**
 * The document, or null where this user may not read it.
 *
 * @param {DocumentReference} reference
 */
export function readable(reference: DocumentReference): Promise<DocumentSnapshot<import("@firebase/firestore").DocumentData, import("@firebase/firestore").DocumentData> | null>;
/**
 * @param {unknown} value
 * @returns {Date | null}
 */
export function dateOf(value: unknown): Date | null;
/**
 * A watch ends with an error; a refusal becomes an OutboxError.
 *
 * @param {(error: Error) => void} onError
 * @returns {(error: Error) => void}
 */
export function ended(onError: (error: Error) => void): (error: Error) => void;
/** @param {Error} error */
export function report(error: Error): void;
export type Status = "queued" | "sent" | "delivered" | "read" | "failed" | "skipped" | "cancelled";
/**
 * A message as people see it, outbound or inbound.
 */
export type Message = {
    /**
     * The requestId of an outbound message.
     */
    id: string;
    threadId: string;
    direction: "outbound" | "inbound";
    parts: Part[];
    status: Status;
    /**
     * The server has not stored it yet: this device is offline, or was until now.
     */
    isPending: boolean;
    createdAt: Date | null;
    sentAt: Date | null;
    deliveredAt: Date | null;
    readAt: Date | null;
    failedAt: Date | null;
    /**
     * Why it failed or was skipped.
     */
    error: {
        code: string;
        message: string;
    } | null;
    /**
     * Whether the files that it names can be shown: those of others are fetched first.
     */
    hasFiles: boolean;
};
export type Thread = {
    id: string;
    accountId: string;
    to: string;
    lastMessageAt: Date | null;
    lastMessageText: string;
    unreadCount: number;
};
export type Membership = {
    accountId: string;
    role: "owner" | "agent" | "viewer";
};
/**
 * A message that is still to be sent, as the worker sees it.
 */
export type Waiting = {
    requestId: string;
    /**
     * Uncertain: perhaps sent; a receipt or an operator decides.
     */
    status: "queued" | "sending" | "uncertain";
    /**
     * The earliest time: the scheduled time, or that of the next try.
     */
    at: Date | null;
    attempts: number;
    /**
     * Why the last try did not succeed.
     */
    lastError: {
        code: string;
        message: string;
    } | null;
    /**
     * Cancelling was requested, and the worker has not done it yet.
     */
    isCancelling: boolean;
};
import type { Firestore } from 'firebase/firestore';
import type { Unsubscribe } from 'firebase/firestore';
import type { DocumentReference } from 'firebase/firestore';
import type { DocumentSnapshot } from 'firebase/firestore';
import type { Part } from './message.js';
