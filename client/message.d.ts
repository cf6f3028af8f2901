/**
 * The SDK's error code.
 *
 * @param {unknown} error
 * @returns {unknown}
 */
export function codeOf(error: unknown): unknown;
/**
 * @param {string} accountId
 * @param {string} to
 * @returns {string}
 */
export function threadIdOf(accountId: string, to: string): string;
/**
 * @param {NewMessage & { at?: unknown }} message
 * @returns {Checked}
 */
export function checked({ requestId, accountId, to, uid, text, parts, at, sendBy }: NewMessage & {
    at?: unknown;
}): Checked;
/**
 * What the list of conversations shows of it.
 *
 * @param {Part[]} parts
 * @returns {string}
 */
export function shownText(parts: Part[]): string;
/**
 * Whether a stored message, or one on its way, is this very one.
 *
 * @param {Record<string, any>} stored
 * @param {Identity} wanted
 * @returns {boolean}
 */
export function isSame(stored: Record<string, any>, wanted: Identity): boolean;
/**
 * @typedef {{ type: 'text', text: string }} TextPart
 * @typedef {{ type: 'media', mediaId: string, mimeType: string, caption?: string, filename?: string }} MediaPart
 * @typedef {{ type: 'template', name: string, language: string, params: string[] }} TemplatePart
 * @typedef {TextPart | MediaPart | TemplatePart} Part
 */
/**
 * @typedef {object} Envelope
 * @property {string} requestId  From `newRequestId()`, made once for one action of the user.
 * @property {string} accountId  The account to send from.
 * @property {string} to  The recipient's address, as the provider writes it.
 * @property {string} uid  The signed-in user.
 * @property {Date} [sendBy]  The deadline: after it the message is `skipped`.
 */
/**
 * @typedef {Envelope & ({ text: string, parts?: undefined } | { parts: Part[], text?: undefined })} NewMessage
 * @typedef {NewMessage & { at: Date }} ScheduledMessage
 */
/**
 * What the message's three documents share, and what makes two messages the same.
 *
 * @typedef {{ requestId: string, accountId: string, threadId: string, to: string, parts: Part[] }} Identity
 */
/**
 * @typedef {{ identity: Identity, uid: string, at: Date | null, sendBy: Date | null }} Checked
 */
/**
 * Errors that a caller can handle. Others come from the SDK.
 *
 *     invalid-message    a field is wrong; the text names the field and the problem
 *     not-allowed        the rules refused it: not signed in, not a member of the account, or a viewer
 *     too-late           the time to send at has passed: ask the user for another
 *     request-id-taken   another message has this requestId: make a new one for a new action
 *     not-found          there is no such message
 */
export class OutboxError extends Error {
    /**
     * @param {'invalid-message' | 'not-allowed' | 'too-late' | 'request-id-taken' | 'not-found'} code
     * @param {string} message
     * @param {unknown} [cause]
     */
    constructor(code: "invalid-message" | "not-allowed" | "too-late" | "request-id-taken" | "not-found", message: string, cause?: unknown);
    code: "invalid-message" | "not-allowed" | "too-late" | "request-id-taken" | "not-found";
}
/**
 * What a field must match, and the words for one that does not. The worker's own rules and words are the same.
 */
export type Rule = {
    pattern: RegExp;
    words: string;
};
export type TextPart = {
    type: "text";
    text: string;
};
export type MediaPart = {
    type: "media";
    mediaId: string;
    mimeType: string;
    caption?: string;
    filename?: string;
};
export type TemplatePart = {
    type: "template";
    name: string;
    language: string;
    params: string[];
};
export type Part = TextPart | MediaPart | TemplatePart;
export type Envelope = {
    /**
     * From `newRequestId()`, made once for one action of the user.
     */
    requestId: string;
    /**
     * The account to send from.
     */
    accountId: string;
    /**
     * The recipient's address, as the provider writes it.
     */
    to: string;
    /**
     * The signed-in user.
     */
    uid: string;
    /**
     * The deadline: after it the message is `skipped`.
     */
    sendBy?: Date | undefined;
};
export type NewMessage = Envelope & ({
    text: string;
    parts?: undefined;
} | {
    parts: Part[];
    text?: undefined;
});
export type ScheduledMessage = NewMessage & {
    at: Date;
};
/**
 * What the message's three documents share, and what makes two messages the same.
 */
export type Identity = {
    requestId: string;
    accountId: string;
    threadId: string;
    to: string;
    parts: Part[];
};
export type Checked = {
    identity: Identity;
    uid: string;
    at: Date | null;
    sendBy: Date | null;
};
