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
export function registerDevice(db: Firestore, { accountId, uid, token, platform }: Device & {
    platform?: string;
}): Promise<{
    deviceId: string;
    isNew: boolean;
}>;
/**
 * End notifications on this device. One that is not registered stays so.
 *
 * @param {Firestore} db
 * @param {Device} device
 * @returns {Promise<void>}
 */
export function removeDevice(db: Firestore, device: Device): Promise<void>;
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
export function watchNotifications(db: Firestore, accountId: string, onNotifications: (notifications: Notification[]) => void, { last, onError }?: {
    last?: number;
    onError?: (error: Error) => void;
}): Unsubscribe;
export type Device = {
    accountId: string;
    /**
     * The signed-in user.
     */
    uid: string;
    /**
     * What `getToken` of the Firebase SDK gave for this device.
     */
    token: string;
};
export type Notification = {
    id: string;
    kind: "run.ended" | "run.paused" | "run.windowClosed";
    runId: string;
    reminderId: string | null;
    /**
     * Of the run at that time.
     */
    status: RunStatus;
    /**
     * Such as "412 of 1000 delivered".
     */
    title: string;
    /**
     * What happened, in sentences.
     */
    text: string;
    sent: number;
    total: number;
    createdAt: Date | null;
};
import type { Firestore } from 'firebase/firestore';
import type { Unsubscribe } from 'firebase/firestore';
import type { RunStatus } from './campaigns.js';
