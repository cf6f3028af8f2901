// The account's phone, where its provider needs one: its state, the code to scan, and the contacts that it knows.

import { collection, doc, limit, onSnapshot, query } from 'firebase/firestore';

import { service } from './files.js';

const $ = (id) => document.getElementById(id);
const MOST_CONTACTS = 100;
/** By `state` of the session's document. */
const WORDS = {
  starting: 'The phone is being connected …',
  scan: 'Scan this code: WhatsApp on the phone, Linked devices, Link a device.',
  connected: 'The phone is connected.',
  disconnected: 'No phone is connected.',
  failed: 'The phone could not be connected.',
};

/** Follows the session of an account whose provider has one, until the returned function is called. */
export function watchSession(db, accountId, { failed }) {
  const shown = { needsPhone: false, state: 'disconnected', code: '', contacts: null };
  const path = (...names) => doc(db, 'accounts', accountId, ...names);
  const quiet = () => {}; // who may not read it sees none
  const render = () => show(shown);
  const stops = [
    onSnapshot(path(), (found) => ((shown.needsPhone = found.data()?.provider === 'waha'), render()), quiet),
    onSnapshot(path('session', 'current'), (found) => {
      const { state = 'disconnected', contacts = null } = found.data() ?? {};
      Object.assign(shown, { state, contacts });
      render();
    }, quiet),
    onSnapshot(path('session', 'qr'), (found) => ((shown.code = found.data()?.code ?? ''), render()), quiet),
  ];
  $('connect').onclick = () => ask(accountId, shown.state === 'connected' ? 'disconnect' : 'connect').catch(failed);
  render();
  return () => stops.forEach((stop) => stop());
}

/** Names of people and groups, by address. */
export function watchContacts(db, accountId, onContacts) {
  return onSnapshot(
    query(collection(db, 'accounts', accountId, 'contacts'), limit(MOST_CONTACTS)),
    (found) => onContacts(new Map(found.docs.map((one) => [one.id, one.data().name ?? one.data().pushName ?? one.id]))),
    () => onContacts(new Map()),
  );
}

function show({ needsPhone, state, code, contacts }) {
  $('session').hidden = !needsPhone;
  $('session-state').textContent = wordsFor(state, contacts);
  $('connect').textContent = state === 'connected' ? 'Disconnect' : 'Connect';
  // The local stack's page server draws the code; a hosted page has no such server.
  const wanted = functions && state === 'scan' && code ? `/qr.svg?${new URLSearchParams({ text: code })}` : '';
  $('qr').hidden = !wanted;
  if (wanted && $('qr').getAttribute('src') !== wanted) $('qr').src = wanted;
}

function wordsFor(state, contacts) {
  if (state === 'connected' && contacts) return `${WORDS[state]} It knows ${contacts} contacts.`;
  if (state === 'scan' && !functions) return 'Scan the code that outbox accounts connect shows in a terminal.';
  return WORDS[state];
}

let functions = null;

/** Where the functions are. Without them the page only shows. */
export function openSession(files) {
  functions = files;
  $('connect').hidden = !files;
}

async function ask(accountId, verb) {
  const { url, token } = service(functions, accountId);
  const headers = { Authorization: `Bearer ${await token()}` };
  const answer = await fetch(`${url}/v1/accounts/${accountId}:${verb}`, { method: 'POST', headers });
  if (!answer.ok) throw Object.assign(new Error(await answer.text()), { code: answer.status === 403 ? 'not-allowed' : 'session' });
}
