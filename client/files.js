/**
 * Files of messages: upload one for an account, and find one to show it.
 *
 * The function `files` checks that the user is a member, and the file's size and type. The bytes go straight to storage,
 * in pieces: a connection that breaks costs one piece, and the same file chosen again after a crash or on another device
 * goes on where it stopped. A file that the account has is not uploaded again.
 *
 *     const part = await uploadFile({ url, token, accountId, file, onProgress: ({ sent, total }) => … });
 *     await sendMessage(db, { requestId, accountId, to, uid, parts: [{ ...part, caption: 'Look' }] });
 */

import { OutboxError } from './message.js';

/** @typedef {import('./message.js').MediaPart} MediaPart */

/** Cloud Storage takes pieces whose size is a multiple of 256 KiB; the last one may be shorter. */
const PIECE = 4 * 256 * 1024;
const TRIES = 6;
const FIRST_PAUSE_MS = 250;
const RESUME = 308;

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
export async function uploadFile({ file, filename, mimeType, onProgress, signal, ...service }) {
  const name = filename ?? ('name' in file && typeof file.name === 'string' ? file.name : undefined);
  const type = (mimeType ?? file.type).replace(/;.*$/s, '').trim();
  if (!file.size) throw new OutboxError('invalid-file', 'the file is empty');
  if (!type) throw new OutboxError('invalid-file', 'the type of the file is not known: give mimeType');
  const sha256 = await sha256Of(file);
  const body = { sha256, bytes: file.size, mimeType: type, ...(name && { filename: name }) };
  const tell = (/** @type {number} */ sent) => onProgress?.({ sent, total: file.size });
  for (let isLost = false; ; isLost = true) {
    const begun = await call(service, 'uploads', { method: 'POST', body: JSON.stringify({ ...body, isLost }), signal });
    if (begun.state === 'stored' || (await sendPieces(begun.uploadUrl, file, tell, signal))) break;
    if (isLost) throw new OutboxError('cannot-upload', 'storage does not take the file; try again later');
  }
  tell(file.size);
  return { type: 'media', mediaId: sha256, mimeType: type, ...(name && { filename: name }) };
}

/**
 * An address to show a file of the account at. An `OutboxError` with the code `not-found`: the file is not there, or not
 * yet.
 *
 * @param {FilesService & { mediaId: string, signal?: AbortSignal }} options
 * @returns {Promise<FileLink>}
 */
export async function fileLink({ mediaId, signal, ...service }) {
  const found = await call(service, `files/${encodeURIComponent(mediaId)}`, { method: 'GET', signal });
  return { ...found, expiresAt: new Date(found.expiresAt) };
}

/**
 * @param {string} url
 * @param {Blob} file
 * @param {(sent: number) => void} tell
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<boolean>}  False: storage does not know this upload any more.
 */
async function sendPieces(url, file, tell, signal) {
  let sent = /** @type {number | null} */ (null); // null: storage knows
  for (let failures = 0; ; ) {
    const last = sent === null ? 0 : Math.min(sent + PIECE, file.size);
    const range = sent === null ? '*' : `${sent}-${last - 1}`;
    const body = sent === null ? undefined : file.slice(sent, last);
    const headers = { 'Content-Range': `bytes ${range}/${file.size}` };
    const answer = await fetch(url, { method: 'PUT', headers, body, signal }).catch((error) => {
      if (signal?.aborted) throw error;
      return null;
    });
    if (answer?.ok) return true;
    if (answer?.status === 412) return true; // another upload of the same content was faster
    if (answer?.status === 404 || answer?.status === 410) return false;
    if (answer?.status === RESUME) {
      const next = Number(/-(\d+)$/.exec(answer.headers.get('Range') ?? '')?.[1] ?? -1) + 1;
      if (sent === null || next > sent) failures = 0;
      sent = next;
      tell(sent);
      continue;
    }
    failures += 1;
    if (failures === TRIES) throw new OutboxError('cannot-upload', `the upload does not go on (${answer?.status ?? 'no answer'})`);
    sent = null;
    await new Promise((resolve) => setTimeout(resolve, FIRST_PAUSE_MS * 2 ** failures));
  }
}

/**
 * @param {FilesService} service
 * @param {string} path
 * @param {RequestInit} options
 * @returns {Promise<any>}
 */
async function call({ url, token, accountId }, path, options) {
  const headers = { Authorization: `Bearer ${await token()}`, ...(options.body && { 'Content-Type': 'application/json' }) };
  const where = `${url.replace(/\/$/, '')}/v1/accounts/${encodeURIComponent(accountId)}/${path}`;
  /** @type {Response} */
  let answer;
  try {
    answer = await fetch(where, { ...options, headers });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new OutboxError('cannot-upload', 'the files of the account cannot be reached', error);
  }
  const body = await answer.json().catch(() => ({}));
  if (answer.ok) return body;
  throw new OutboxError(CODES[answer.status] ?? 'cannot-upload', body.error ?? `the answer was ${answer.status}`);
}

/** @type {Record<number, 'invalid-file' | 'not-allowed' | 'not-found'>} */
const CODES = { 400: 'invalid-file', 401: 'not-allowed', 403: 'not-allowed', 404: 'not-found', 413: 'invalid-file', 415: 'invalid-file' };

/** @param {Blob} file */
async function sha256Of(file) {
  const digest = await crypto.subtle.digest('SHA-256', await file.arrayBuffer());
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
