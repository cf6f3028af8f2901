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
const MAX_AHEAD_DAYS = 365;
const DAY_MS = 86_400_000;

/** What a field must match, and the words for one that does not. The worker's own rules and words are the same.
 *  @typedef {{ pattern: RegExp, words: string }} Rule */

/** @type {Rule} */
const REQUEST_ID = {
  pattern: /^(?!__.*__$)[A-Za-z0-9_-]{8,128}$/,
  words: 'must be 8 to 128 of A-Z, a-z, 0-9, _ and -, and must not begin and end with two underscores',
};
/** @type {Rule} */
const ACCOUNT_ID = {
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
export function checked({ requestId, accountId, to, uid, text, parts, at, sendBy }) {
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
  return { identity, uid, ...checkedTimes(at, sendBy) };
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
};

/** @param {unknown} parts */
function checkedParts(parts) {
  if (!Array.isArray(parts) || parts.length < 1 || parts.length > MAX_PARTS) {
    throw invalid(`parts must be a list of 1 to ${MAX_PARTS} parts`);
  }
  const good = parts.map((part, index) => checkedPart(part, `parts[${index}]`));
  requireBytes('parts', good.flatMap((part) => Object.values(part).flat()), MAX_PARTS_BYTES);
  return good;
}

/**
 * @param {any} part  Anything: callers without types come here, too.
 * @param {string} where
 * @returns {Part}
 */
function checkedPart(part, where) {
  const { type, params, ...fields } = Object(part);
  const known = Object.hasOwn(PARTS, type) ? PARTS[type] : undefined;
  const at = (/** @type {string} */ name) => (where ? `${where}.${name}` : name);
  if (!known) throw invalid(`${at('type')} must be text, media or template`);
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
  return { type, ...fields };
}

/**
 * @param {unknown} params
 * @param {string} where
 * @returns {string[]}
 */
function checkedParams(params, where) {
  if (!Array.isArray(params)) throw invalid(`${where} must be a list of texts`);
  if (params.length > MAX_PARAMS) {
    throw invalid(`${where} has ${count(params.length)} entries; at most ${count(MAX_PARAMS)} are allowed`);
  }
  params.forEach((value, index) => requireText(`${where}[${index}]`, value, MAX_PARAM, 0));
  requireBytes(where, params, MAX_PARAMS_BYTES);
  return [...params];
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
function requireRule(name, value, { pattern, words }) {
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
function requireText(name, value, most, least = 1) {
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
function requireDate(name, value) {
  if (!(value instanceof Date) || Number.isNaN(value.getTime())) throw invalid(`${name} must be a Date`);
}

/** @param {string} sentence */
function invalid(sentence) {
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
 * Firestore keeps a map's fields in an order of its own.
 *
 * @param {unknown} value
 */
function inOrder(value) {
  return JSON.stringify(value, (_, inner) => {
    const isMap = inner !== null && typeof inner === 'object' && !Array.isArray(inner);
    return isMap ? Object.fromEntries(Object.entries(inner).sort()) : inner;
  });
}
