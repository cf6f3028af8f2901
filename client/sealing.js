/**
 * Seal a message before it is written, so that Firestore, its backups, tasks and logs hold only ciphertext. For accounts
 * that `outbox keys create` has sealed (docs/privacy.md). Needs the package @hpke/core beside this one.
 *
 *     import { sealMessage } from 'firestore-outbox/sealing';
 *     sendMessage(db, await sealMessage(db, { requestId, accountId, to, text: 'Hello', uid }));
 *
 * Each text and each template becomes one sealed part, encrypted with HPKE (RFC 9180) to the account's public key and
 * bound to the account, the message, the key version and its place. The worker opens it when it sends.
 */

import { Aes128Gcm, CipherSuite, DhkemP256HkdfSha256, HkdfSha256 } from '@hpke/core';
import { doc, getDoc } from 'firebase/firestore';

import { OutboxError } from './message.js';

/** @import { Firestore } from 'firebase/firestore' */
/** @import { NewMessage, Part, ScheduledMessage } from './message.js' */

/** @typedef {{ keyVersion: number, publicKey: string }} SealingKey  The field `sealing` of an account's document. */
/** @typedef {{ accountId: string, requestId: string, key: SealingKey }} Sealed  What a sealed part is bound to. */

const LABEL = 'firestore-outbox sealed part';
const FORM = 1;
const HASH_BYTES = 8;
const SEALABLE = new Set(['text', 'template']);
const KEY_MS = 300_000; // how long a key that was read serves: a rotated one still opens

const utf8 = new TextEncoder();
const suite = new CipherSuite({ kem: new DhkemP256HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes128Gcm() });

/** @type {WeakMap<Firestore, Map<string, { key: SealingKey, until: number }>>} */
const known = new WeakMap();

/**
 * Seal the texts and templates of a message. Give the result to `sendMessage` or `scheduleMessage`.
 *
 * @template {NewMessage | ScheduledMessage} M
 * @param {Firestore} db
 * @param {M} message
 * @returns {Promise<Omit<M, 'text' | 'parts'> & { parts: Part[], text?: undefined }>}
 */
export async function sealMessage(db, message) {
  const { text, parts, ...rest } = message;
  const clear = /** @type {Part[]} */ (text === undefined ? parts : [{ type: 'text', text }]);
  const { accountId, requestId } = message;
  return { ...rest, parts: await sealParts(clear, { accountId, requestId, key: await keyOf(db, accountId) }) };
}

/**
 * @param {Part[]} parts
 * @param {Sealed} bound
 * @returns {Promise<Part[]>}
 */
export async function sealParts(parts, { accountId, requestId, key }) {
  const recipientPublicKey = await suite.kem.deserializePublicKey(bytesOf(key.publicKey).buffer);
  const header = await headerOf(accountId, requestId);
  return Promise.all(
    parts.map(async (part, index) => {
      if (!SEALABLE.has(part.type)) return part;
      const info = bindingOf(header, accountId, requestId, key.keyVersion, index);
      const clear = utf8.encode(JSON.stringify(part));
      const { enc, ct } = await suite.seal({ recipientPublicKey, info: info.buffer }, clear.buffer);
      const whole = joined([header, new Uint8Array(enc), new Uint8Array(ct)]);
      return /** @type {Part} */ ({ type: 'sealed', keyVersion: key.keyVersion, ciphertext: encoded(whole) });
    }),
  );
}

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
export async function openMessages(url, token, accountId, messages) {
  const sealed = messages.filter(({ parts }) => parts.some(({ type }) => type === 'sealed'));
  if (!sealed.length) return messages;
  const answer = await fetch(`${url}/v1/messages:open`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ accountId, messages: sealed.map(({ id, parts }) => ({ messageId: id, parts })) }),
  });
  const body = await answer.json();
  if (!answer.ok) throw new OutboxError(answer.status === 403 ? 'not-allowed' : 'cannot-open', body.error);
  const opened = new Map(body.messages.map((/** @type {any} */ one) => [one.messageId, one.parts]));
  return messages.map((one) => (opened.has(one.id) ? { ...one, parts: opened.get(one.id) } : one));
}

/**
 * @param {Firestore} db
 * @param {string} accountId
 * @returns {Promise<SealingKey>}
 */
async function keyOf(db, accountId) {
  const keys = known.get(db) ?? new Map();
  known.set(db, keys);
  const kept = keys.get(accountId);
  if (kept && kept.until > Date.now()) return kept.key;
  const key = (await getDoc(doc(db, 'accounts', accountId))).data()?.sealing;
  if (!key) throw new OutboxError('not-sealed', `the account ${accountId} has no key to seal with: outbox keys create ${accountId}`);
  keys.set(accountId, { key, until: Date.now() + KEY_MS });
  return key;
}

/**
 * The form, and the beginnings of two hashes, which tell a copied ciphertext from an altered one.
 *
 * @param {string} accountId
 * @param {string} requestId
 */
async function headerOf(accountId, requestId) {
  const hashes = await Promise.all([hash('account', accountId), hash('message', requestId)]);
  return joined([Uint8Array.of(FORM), ...hashes]);
}

/**
 * @param {string} what
 * @param {string} name
 */
async function hash(what, name) {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', utf8.encode(`${what}\0${name}`))).slice(0, HASH_BYTES);
}

/**
 * HPKE's `info`: each entry follows its length in four bytes.
 *
 * @param {Uint8Array} header
 * @param {string} accountId
 * @param {string} requestId
 * @param {number} keyVersion
 * @param {number} index
 */
function bindingOf(header, accountId, requestId, keyVersion, index) {
  const entries = [utf8.encode(LABEL), header, ...[accountId, requestId, `${keyVersion}`, `${index}`].map((one) => utf8.encode(one))];
  return joined(entries.flatMap((entry) => [lengthOf(entry), entry]));
}

/** @param {Uint8Array} entry */
function lengthOf(entry) {
  const four = new Uint8Array(4);
  new DataView(four.buffer).setUint32(0, entry.length);
  return four;
}

/** @param {Uint8Array[]} pieces */
function joined(pieces) {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** @param {Uint8Array} raw */
function encoded(raw) {
  let binary = '';
  for (const byte of raw) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** @param {string} text */
function bytesOf(text) {
  return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0));
}
