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
export function checked({ requestId, accountId, to, uid, text, parts, at, sendBy, priority }: NewMessage & {
    at?: unknown;
}): Checked;
/** @param {unknown} parts */
export function checkedParts(parts: unknown): Part[];
/**
 * @param {string} name
 * @param {unknown} value
 * @param {Rule} rule
 */
export function requireRule(name: string, value: unknown, { pattern, words }: Rule): void;
/**
 * Characters are counted as JavaScript and the rules count them: most emoji are two.
 *
 * @param {string} name
 * @param {unknown} value
 * @param {number} most
 * @param {number} [least]
 */
export function requireText(name: string, value: unknown, most: number, least?: number): void;
/**
 * @param {string} name
 * @param {unknown} value
 */
export function requireDate(name: string, value: unknown): void;
/** @param {string} sentence */
export function invalid(sentence: string): OutboxError;
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
 * Firestore keeps a map's fields in an order of its own. Sealing the same text twice gives two ciphertexts, so a sealed
 * part counts as the same as any sealed part in its place.
 *
 * @param {unknown} value
 */
export function inOrder(value: unknown): string;
/** @type {Rule} */
export const ACCOUNT_ID: Rule;
/**
 * @typedef {{ type: 'text', text: string }} TextPart
 * @typedef {{ type: 'media', mediaId: string, mimeType: string, caption?: string, filename?: string }} MediaPart
 * @typedef {{ type: 'template', name: string, language: string, params: string[] | TemplateValues }} TemplatePart
 * @typedef {{ header?: string[] | HeaderFile, body?: string[], buttons?: string[] }} TemplateValues
 * @typedef {{ image: string } | { video: string } | { document: string }} HeaderFile  A link, or the provider's id.
 * @typedef {{ type: 'sealed', keyVersion: number, ciphertext: string }} SealedPart
 * @typedef {TextPart | MediaPart | TemplatePart | SealedPart} Part
 */
/** @typedef {'urgent' | 'normal' | 'bulk'} Priority */
/**
 * @typedef {object} Envelope
 * @property {string} requestId  From `newRequestId()`, made once for one action of the user.
 * @property {string} accountId  The account to send from.
 * @property {string} to  The recipient's address, as the provider writes it.
 * @property {string} uid  The signed-in user.
 * @property {Date} [sendBy]  The deadline: after it the message is `skipped`.
 * @property {Priority} [priority]  `urgent` goes ahead of the account's other messages, `bulk` behind them; else `normal`.
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
 * @typedef {{ identity: Identity, uid: string, at: Date | null, sendBy: Date | null, priority: Priority | null }} Checked
 */
/**
 * Errors that a caller can handle. Others come from the SDK.
 *
 *     invalid-message    a field is wrong; the text names the field and the problem
 *     not-allowed        the rules refused it: not signed in, not a member of the account, or a viewer
 *     too-late           the time to send at has passed: ask the user for another
 *     request-id-taken   another message has this requestId: make a new one for a new action
 *     not-found          there is no such message
 *     not-sealed         the account has no key to seal with
 *     invalid-file       a file is too large, empty, or of a type that is not taken
 *     cannot-upload      a file cannot be uploaded or fetched now; the text says why
 *     cannot-open        sealed messages cannot be opened now; the text says why
 */
export class OutboxError extends Error {
    /**
     * @param {'invalid-message' | 'not-allowed' | 'too-late' | 'request-id-taken' | 'not-found' | 'not-sealed' | 'cannot-open' | 'invalid-file' | 'cannot-upload'} code
     * @param {string} message
     * @param {unknown} [cause]
     */
    constructor(code: "invalid-message" | "not-allowed" | "too-late" | "request-id-taken" | "not-found" | "not-sealed" | "cannot-open" | "invalid-file" | "cannot-upload", message: string, cause?: unknown);
    code: "invalid-message" | "not-allowed" | "too-late" | "request-id-taken" | "not-found" | "not-sealed" | "cannot-open" | "invalid-file" | "cannot-upload";
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
    params: string[] | TemplateValues;
};
export type TemplateValues = {
    header?: string[] | HeaderFile;
    body?: string[];
    buttons?: string[];
};
/**
 * A link, or the provider's id.
 */
export type HeaderFile = {
    image: string;
} | {
    video: string;
} | {
    document: string;
};
export type SealedPart = {
    type: "sealed";
    keyVersion: number;
    ciphertext: string;
};
export type Part = TextPart | MediaPart | TemplatePart | SealedPart;
export type Priority = "urgent" | "normal" | "bulk";
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
    /**
     * `urgent` goes ahead of the account's other messages, `bulk` behind them; else `normal`.
     */
    priority?: Priority | undefined;
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
    priority: Priority | null;
};
