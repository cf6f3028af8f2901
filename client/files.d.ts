/**
 * Where the function is, and as whom to call it.
 *
 * @typedef {object} FilesService
 * @property {string} url  Where the function `files` is, such as https://REGION-PROJECT.cloudfunctions.net/outbox-files
 * @property {() => Promise<string> | string} token  The user's Firebase ID token: `() => auth.currentUser.getIdToken()`
 * @property {string} accountId
 */
/**
 * @typedef {FilesService & {
 *   file: Blob,
 *   filename?: string,
 *   mimeType?: string,
 *   onProgress?: (progress: { sent: number, total: number }) => void,
 *   signal?: AbortSignal,
 * }} NewFile
 */
/**
 * @typedef {object} FileLink
 * @property {string} mediaId
 * @property {string} url  Good for some minutes: ask again when it has ended.
 * @property {Date} expiresAt
 * @property {string | null} mimeType
 * @property {string | null} filename
 * @property {number} bytes
 */
/**
 * Upload a file, or go on with its upload. The answer is a part for a message.
 *
 * @param {NewFile} options
 * @returns {Promise<MediaPart>}
 */
export function uploadFile({ file, filename, mimeType, onProgress, signal, ...service }: NewFile): Promise<MediaPart>;
/**
 * An address to show a file of the account at. An `OutboxError` with the code `not-found`: the file is not there, or not
 * yet.
 *
 * @param {FilesService & { mediaId: string, signal?: AbortSignal }} options
 * @returns {Promise<FileLink>}
 */
export function fileLink({ mediaId, signal, ...service }: FilesService & {
    mediaId: string;
    signal?: AbortSignal;
}): Promise<FileLink>;
/**
 * Where the function is, and as whom to call it.
 */
export type FilesService = {
    /**
     * Where the function `files` is, such as https://REGION-PROJECT.cloudfunctions.net/outbox-files
     */
    url: string;
    /**
     * The user's Firebase ID token: `() => auth.currentUser.getIdToken()`
     */
    token: () => Promise<string> | string;
    accountId: string;
};
export type NewFile = FilesService & {
    file: Blob;
    filename?: string;
    mimeType?: string;
    onProgress?: (progress: {
        sent: number;
        total: number;
    }) => void;
    signal?: AbortSignal;
};
export type FileLink = {
    mediaId: string;
    /**
     * Good for some minutes: ask again when it has ended.
     */
    url: string;
    expiresAt: Date;
    mimeType: string | null;
    filename: string | null;
    bytes: number;
};
export type MediaPart = import("./message.js").MediaPart;
