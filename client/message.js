/**
 * Check a message before it is written: what the rules or the worker would refuse is refused here, with an error that
 * names the field and the problem. Nothing here calls Firestore.
 */

const SHOWN_TEXT = 200;
const MAX_TEXT = 4096;
const MAX_PARTS = 10;
const MAX_PARAMS = 100;
const MAX_PARAM = 1024;
const MAX_PARAMS_BYTES = 32 * 1024;
/** The worker fails documents above 256 KiB; the rest is for ids, field names and what the worker writes. */
const MAX_PARTS_BYTES = 240 * 1024;
const MAX_SEALED = 48 * 1024;
const MAX_KEY_VERSION = 1_000_000;
const MAX_AHEAD_DAYS = 365;
const PRIORITIES = ['urgent', 'normal', 'bulk'];
const DAY_MS = 86_400_000;

/** What a field must match, and the words for one that does not. The worker's own rules and words are the same.
 *  @typedef {{ pattern: RegExp, words: string }} Rule */

/** @type {Rule} */
const REQUEST_ID = {
  pattern: /^(?!__.*__$)[A-Za-z0-9_-]{8,128}$/,
  words: 'must be 8 to 128 of A-Z, a-z, 0-9, _ and -, and must not begin and end with two underscores',
};
/** @type {Rule} */
export const ACCOUNT_ID = {
  pattern: /^(?!.*__)(?!(?:\.|\.\.|\*)$)[^/]{1,128}$/s,
  words: 'must be 1 to 128 characters without a slash and without two underscores in a row',
};
/** @type {Rule} */
const ADDRESS = {
  pattern: /^[^_/\s][^/\s]{0,255}$/,
  words: 'must be 1 to 256 characters without slashes and blanks, and with no underscore in front',
};
/** @type {Rule} */
const MEDIA_ID = { pattern: /^[^/]{1,512}$/, words: 'must be 1 to 512 characters without a slash' };
/** @type {Rule} */
const MEDIA_TYPE = {
  pattern: /^(?!.{201})[\w.+-]+\/[\w.+-]+(;.*)?$/,
  words: 'must be a media type such as image/png',
};

/** @type {Rule} */
const CIPHERTEXT = {
  pattern: /^(?!.{49153})[A-Za-z0-9_-]+$/,
  words: `must be 1 to ${count(MAX_SEALED)} of A-Z, a-z, 0-9, _ and -: base64url without padding`,
};

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
  constructor(code, message, cause) {
    super(message, { cause });
    this.name = 'OutboxError';
    this.code = code;
  }
}

/**
 * The SDK's error code.
 *
 * @param {unknown} error
 * @returns {unknown}
 */
export function codeOf(error) {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/**
 * @param {string} accountId
 * @param {string} to
 * @returns {string}
 */
export function threadIdOf(accountId, to) {
  return `${accountId}__${to}`;
}

/**
 * @param {NewMessage & { at?: unknown }} message
 * @returns {Checked}
 */
export function checked({ requestId, accountId, to, uid, text, parts, at, sendBy, priority }) {
  requireRule('requestId', requestId, REQUEST_ID);
  requireRule('accountId', accountId, ACCOUNT_ID);
  requireRule('to', to, ADDRESS);
  requireText('uid', uid, 128);
  if ((text === undefined) === (parts === undefined)) throw invalid('a message has either text or parts');
  const identity = {
    requestId,
    accountId,
    threadId: threadIdOf(accountId, to),
    to,
    parts: text === undefined ? checkedParts(parts) : [checkedPart({ type: 'text', text }, '')],
  };
  return { identity, uid, ...checkedTimes(at, sendBy), priority: checkedPriority(priority) };
}

/**
 * @param {unknown} priority
 * @returns {Priority | null}
 */
function checkedPriority(priority = null) {
  if (priority !== null && !PRIORITIES.includes(/** @type {string} */ (priority))) {
    throw invalid('priority must be urgent, normal or bulk');
  }
  return /** @type {Priority | null} */ (priority);
}

/**
 * @param {unknown} at
 * @param {unknown} sendBy
 */
function checkedTimes(at = null, sendBy = null) {
  if (at !== null) requireDate('at', at);
  if (sendBy !== null) requireDate('sendBy', sendBy);
  const times = { at: /** @type {Date | null} */ (at), sendBy: /** @type {Date | null} */ (sendBy) };
  if (times.at && times.at.getTime() - Date.now() > MAX_AHEAD_DAYS * DAY_MS) {
    throw invalid(`at is more than ${MAX_AHEAD_DAYS} days ahead`);
  }
  if (times.at && times.sendBy && times.sendBy < times.at) throw invalid('sendBy is before at, so the message could never be sent');
  return times;
}

/** What each type of part has: the longest value of a field, and whether it must be there.
 *  @type {Record<string, Record<string, Rule | { most: number, least?: number, optional?: true }>>} */
const PARTS = {
  text: { text: { most: MAX_TEXT } },
  media: {
    mediaId: MEDIA_ID,
    mimeType: MEDIA_TYPE,
    caption: { most: MAX_TEXT, optional: true },
    filename: { most: 512, optional: true },
  },
  template: { name: { most: 512 }, language: { most: 35, least: 2 } },
  sealed: { ciphertext: CIPHERTEXT },
};

/** @param {unknown} parts */
export function checkedParts(parts) {
  if (!Array.isArray(parts) || parts.length < 1 || parts.length > MAX_PARTS) {
    throw invalid(`parts must be a list of 1 to ${MAX_PARTS} parts`);
  }
  const good = parts.map((part, index) => checkedPart(part, `parts[${index}]`));
  requireBytes('parts', textsOf(good), MAX_PARTS_BYTES);
  return good;
}

/**
 * @param {any} part  Anything: callers without types come here, too.
 * @param {string} where
 * @returns {Part}
 */
function checkedPart(part, where) {
  const { type, params, keyVersion, ...fields } = Object(part);
  const known = Object.hasOwn(PARTS, type) ? PARTS[type] : undefined;
  const at = (/** @type {string} */ name) => (where ? `${where}.${name}` : name);
  if (!known) throw invalid(`${at('type')} must be text, media, template or sealed`);
  if (type === 'sealed') requireKeyVersion(at('keyVersion'), keyVersion);
  else if (keyVersion !== undefined) throw invalid(`${at('keyVersion')} is no field of a ${type} part`);
  for (const name of Object.keys(fields)) {
    if (!Object.hasOwn(known, name)) throw invalid(`${at(name)} is no field of a ${type} part`);
    if (fields[name] === undefined) delete fields[name]; // as if it were not there; Firestore takes no undefined
  }
  for (const [name, rule] of Object.entries(known)) {
    if ('pattern' in rule) requireRule(at(name), fields[name], rule);
    else if (!rule.optional || name in fields) requireText(at(name), fields[name], rule.most, rule.least);
  }
  if (type === 'template') return { type, ...fields, params: checkedParams(params, at('params')) };
  if (params !== undefined) throw invalid(`${at('params')} is no field of a ${type} part`);
  if (type === 'sealed') return { type, ...fields, keyVersion };
  return { type, ...fields };
}

/**
 * @param {string} name
 * @param {unknown} value
 */
function requireKeyVersion(name, value) {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > MAX_KEY_VERSION) {
    throw invalid(`${name} must be a whole number from 1 to ${count(MAX_KEY_VERSION)}`);
  }
}

/**
 * Texts for the body, or values for header, body and buttons.
 *
 * @param {unknown} params
 * @param {string} where
 * @returns {string[] | TemplateValues}
 */
function checkedParams(params, where) {
  const good = isMap(params) ? checkedValues(params, where) : checkedTexts(params, where);
  const texts = textsOf(good);
  requireFew(where, texts);
  requireBytes(where, texts, MAX_PARAMS_BYTES);
  return good;
}

/**
 * @param {Record<string, unknown>} params
 * @param {string} where
 * @returns {TemplateValues}
 */
function checkedValues(params, where) {
  /** @type {Record<string, unknown>} */
  const good = {};
  for (const [name, value] of Object.entries(params)) {
    if (!['header', 'body', 'buttons'].includes(name)) throw invalid(`${where}.${name} is unknown`);
    if (value === undefined) continue; // as if it were not there
    const isFile = name === 'header' && isMap(value);
    good[name] = isFile ? checkedFile(value, `${where}.header`) : checkedTexts(value, `${where}.${name}`);
  }
  return good;
}

/**
 * @param {Record<string, unknown>} file
 * @param {string} where
 */
function checkedFile(file, where) {
  const [kind = '', ...more] = Object.keys(file);
  if (more.length || !['image', 'video', 'document'].includes(kind)) {
    throw invalid(`${where} must be a list of texts, or one of image, video and document`);
  }
  requireText(`${where}.${kind}`, file[kind], MAX_PARAM, 0);
  return { [kind]: file[kind] };
}

/**
 * @param {unknown} values
 * @param {string} where
 * @returns {string[]}
 */
function checkedTexts(values, where) {
  if (!Array.isArray(values)) throw invalid(`${where} must be a list of texts`);
  requireFew(where, values);
  values.forEach((value, index) => requireText(`${where}[${index}]`, value, MAX_PARAM, 0));
  return [...values];
}

/**
 * @param {string} name
 * @param {unknown[]} values
 */
function requireFew(name, values) {
  if (values.length > MAX_PARAMS) {
    throw invalid(`${name} has ${count(values.length)} entries; at most ${count(MAX_PARAMS)} are allowed`);
  }
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
function isMap(value) {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/**
 * Every text in a part, or in several.
 *
 * @param {unknown} value
 * @returns {string[]}
 */
function textsOf(value) {
  if (typeof value === 'string') return [value];
  return value !== null && typeof value === 'object' ? Object.values(value).flatMap(textsOf) : [];
}

/**
 * @param {string} name
 * @param {string[]} texts
 * @param {number} most
 */
function requireBytes(name, texts, most) {
  const bytes = new TextEncoder().encode(texts.join('')).length;
  if (bytes > most) throw invalid(`${name} has ${count(bytes)} bytes of text; at most ${count(most)} are allowed`);
}

/**
 * 4097 as 4,097.
 *
 * @param {number} number
 */
function count(number) {
  return number.toLocaleString('en-US');
}

/**
 * @param {string} name
 * @param {unknown} value
 * @param {Rule} rule
 */
export function requireRule(name, value, { pattern, words }) {
  if (typeof value !== 'string') throw invalid(`${name} must be a text`);
  if (!pattern.test(value)) throw invalid(`${name} ${words}`);
}

/**
 * Characters are counted as JavaScript and the rules count them: most emoji are two.
 *
 * @param {string} name
 * @param {unknown} value
 * @param {number} most
 * @param {number} [least]
 */
export function requireText(name, value, most, least = 1) {
  if (typeof value !== 'string') throw invalid(`${name} must be a text`);
  if (value.length < least) throw invalid(value ? `${name} is too short` : `${name} is empty`);
  if (value.length > most) {
    throw invalid(`${name} has ${count(value.length)} characters; at most ${count(most)} are allowed`);
  }
}

/**
 * @param {string} name
 * @param {unknown} value
 */
export function requireDate(name, value) {
  if (!(value instanceof Date) || Number.isNaN(value.getTime())) throw invalid(`${name} must be a Date`);
}

/** @param {string} sentence */
export function invalid(sentence) {
  return new OutboxError('invalid-message', sentence);
}

/**
 * What the list of conversations shows of it.
 *
 * @param {Part[]} parts
 * @returns {string}
 */
export function shownText(parts) {
  for (const part of parts) {
    const text = part.type === 'text' ? part.text : part.type === 'media' ? part.caption : undefined;
    if (text) return cut(text, SHOWN_TEXT);
  }
  return '';
}

/**
 * Never in the middle of a character.
 *
 * @param {string} text
 * @param {number} most
 */
function cut(text, most) {
  const end = /[\uD800-\uDBFF]/.test(text.charAt(most - 1)) ? most - 1 : most;
  return text.length > most ? text.slice(0, end) : text;
}

/**
 * Whether a stored message, or one on its way, is this very one.
 *
 * @param {Record<string, any>} stored
 * @param {Identity} wanted
 * @returns {boolean}
 */
export function isSame(stored, wanted) {
  return (
    stored.accountId === wanted.accountId &&
    stored.to === wanted.to &&
    inOrder(stored.parts) === inOrder(wanted.parts)
  );
}

/**
 * Firestore keeps a map's fields in an order of its own. Sealing the same text twice gives two ciphertexts, so a sealed
 * part counts as the same as any sealed part in its place.
 *
 * @param {unknown} value
 */
export function inOrder(value) {
  return JSON.stringify(value, (_, inner) => {
    const isMap = inner !== null && typeof inner === 'object' && !Array.isArray(inner);
    if (isMap && inner.type === 'sealed') return 'sealed';
    return isMap ? Object.fromEntries(Object.entries(inner).sort()) : inner;
  });
}
