/**
 * Seal the texts and templates of a message. Give the result to `sendMessage` or `scheduleMessage`.
 *
 * @template {NewMessage | ScheduledMessage} M
 * @param {Firestore} db
 * @param {M} message
 * @returns {Promise<Omit<M, 'text' | 'parts'> & { parts: Part[], text?: undefined }>}
 */
export function sealMessage<M extends NewMessage | ScheduledMessage>(db: Firestore, message: M): Promise<Omit<M, "text" | "parts"> & {
    parts: Part[];
    text?: undefined;
}>;
/**
 * @param {Part[]} parts
 * @param {Sealed} bound
 * @returns {Promise<Part[]>}
 */
export function sealParts(parts: Part[], { accountId, requestId, key }: Sealed): Promise<Part[]>;
/**
 * Read sealed messages through the function `open_messages`, as `watchThread` showed them. A part that does not open
 * stays `sealed`, with the reason as its `error`. At most 100 messages in a call.
 *
 * @template {{ id: string, parts: Part[] }} M
 * @param {string} url  Where the function is, such as https://REGION-PROJECT.cloudfunctions.net/outbox-open
 * @param {string} token  A Firebase ID token: `await user.getIdToken()`.
 * @param {string} accountId
 * @param {M[]} messages
 * @returns {Promise<M[]>}
 */
export function openMessages<M extends {
    id: string;
    parts: Part[];
}>(url: string, token: string, accountId: string, messages: M[]): Promise<M[]>;
/**
 * The field `sealing` of an account's document.
 */
export type SealingKey = {
    keyVersion: number;
    publicKey: string;
};
/**
 * What a sealed part is bound to.
 */
export type Sealed = {
    accountId: string;
    requestId: string;
    key: SealingKey;
};
import type { NewMessage } from './message.js';
import type { ScheduledMessage } from './message.js';
import type { Firestore } from 'firebase/firestore';
import type { Part } from './message.js';
