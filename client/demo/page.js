// The page: which account and which contact, and what is shown of them. What it knows of the outbox is ../outbox.js.

import {
  markRead,
  newRequestId,
  scheduleMessage,
  sendMessage,
  threadIdOf,
  watchAccounts,
  watchThread,
  watchThreads,
  watchWaiting,
} from '../outbox.js';
import { watchAccountState } from './account.js';
import { openAttachment } from './attachment.js';
import { connect } from './connection.js';
import { showMessages } from './messages.js';
import { lookAtPhone, openPhone } from './phone.js';
import { openSession, watchContacts, watchSession } from './session.js';
import { watchStack } from './stack.js';
import { showThreads } from './threads.js';
import { actionWords } from './words.js';

const $ = (id) => document.getElementById(id);
const LATER_MS = 5 * 60_000;

const config = await (await fetch('../config.json')).json();
const { db, user, signOut } = await connect(config);
if (config.files) config.files.token = () => user.getIdToken();
/** Those of the configuration, or those that the person is a member of. */
let accounts = config.accounts ?? [];

/** What is open now, and how to stop watching it. */
const open = { accountId: '', to: '', draft: newRequestId(), stop: [], contacts: new Map() };

// --- account and contact, kept in the address: a tab can be reloaded, and a link to it can be sent

function go(accountId, to) {
  const before = open.to;
  history.pushState(null, '', address(accountId, to));
  show();
  // What had the focus may be hidden now, on a small screen.
  const link = [...$('threads').querySelectorAll('a')].find(({ dataset }) => dataset.to === before);
  (to ? $('contact') : (link ?? $('account'))).focus();
}

function address(accountId, to) {
  return `?${new URLSearchParams({ account: accountId, ...(to && { to }) })}`;
}

function show() {
  const wanted = new URLSearchParams(location.search);
  const accountId = wanted.get('account') || accounts[0]?.id;
  if (!accountId) return;
  const to = wanted.get('to') ?? '';
  open.stop.forEach((stop) => stop());
  Object.assign(open, { accountId, to, draft: newRequestId(), stop: [], contacts: new Map() });
  document.body.dataset.view = to ? 'conversation' : 'list';
  showAccounts(accountId);
  problem('');
  notice('account', '');
  watchAccount(accountId, to);
  $('contact').textContent = to ? nameOf(to) : 'Pick a contact';
  $('composer').hidden = !to;
  $('phone').hidden = !to || !config.hasSimulator;
  $('messages').replaceChildren();
  attachment.remove();
  if (to) watchConversation(accountId, to);
  if (to && config.hasSimulator) lookAtPhone(to).catch(failed);
}

function showAccounts(accountId) {
  const known = accounts.some(({ id }) => id === accountId);
  const shown = known ? accounts : [...accounts, { id: accountId, name: accountId }];
  $('account').replaceChildren(...shown.map(({ id, name }) => new Option(name, id, false, id === accountId)));
}

function nameOf(to) {
  return open.contacts.get(to) ?? config.contacts.find((contact) => contact.to === to)?.name ?? to;
}

// --- what is watched

function watchAccount(accountId, to) {
  let known = [];
  const render = (threads) => {
    known = threads;
    const contacts = [...open.contacts.keys(), ...config.contacts.map((contact) => contact.to)];
    showThreads($('threads'), { accountId, threads, contacts, to, nameOf, address, go });
    const current = threads.find((thread) => thread.to === to);
    if (current?.unreadCount && document.visibilityState === 'visible') markRead(db, current.id).catch(failed);
  };
  render([]);
  open.stop.push(
    watchThreads(db, accountId, render, { onError: refused }),
    watchSession(db, accountId, { failed }),
    watchContacts(db, accountId, (contacts) => {
      open.contacts = contacts;
      if (to) $('contact').textContent = nameOf(to);
      render(known);
    }),
    watchAccountState(db, accountId, ({ words, isKnown }) => {
      notice('account', words);
      $('composer').hidden = !to || !isKnown;
    }),
  );
}

function watchConversation(accountId, to) {
  const threadId = threadIdOf(accountId, to);
  let messages = [];
  let waiting = [];
  const { files } = config;
  const render = () => showMessages($('messages'), { db, accountId, files, messages, waiting, failed });
  open.stop.push(
    watchThread(db, threadId, (found) => ((messages = found), render()), { onError: refused }),
    watchWaiting(db, { accountId, threadId }, (found) => ((waiting = found), render()), { onError: refused }),
  );
}

/** A membership that is given or taken counts at once. */
function followMemberships() {
  $('person').hidden = false;
  $('person-name').textContent = user.email ?? user.uid;
  $('sign-out').addEventListener('click', () => signOut().catch(failed));
  const none = `You are not a member of an account yet. Ask an owner to add you; your user id is ${user.uid}.`;
  watchAccounts(db, user.uid, (found) => {
    accounts = found.map(({ accountId }) => ({ id: accountId, name: accountId }));
    notice('membership', accounts.length ? '' : none);
    if (open.accountId) showAccounts(open.accountId);
    else show();
  }, { onError: failed });
}

// --- what is sent

const attachment = openAttachment({ files: config.files, open, problem });

$('composer').addEventListener('submit', async (event) => {
  event.preventDefault();
  const text = $('text').value.trim();
  if (!text && !attachment.isThere) return; // the second click of two finds nothing left to send
  const { accountId, to, draft } = open;
  const parts = attachment.isThere ? await attached(text) : [{ type: 'text', text }];
  if (!parts || draft !== open.draft) return; // the user has gone on to something else
  const message = { requestId: draft, accountId, to, parts, uid: user.uid };
  const isLater = event.submitter?.value === 'later';
  const at = new Date($('at').value);
  const sending = isLater ? scheduleMessage(db, { ...message, at }) : sendMessage(db, message);
  // Not awaited: offline it would not end. The thread shows it already.
  sending.catch((error) => giveBack(draft, text, error));
  open.draft = newRequestId();
  $('text').value = '';
  attachment.remove();
  $('later').open = false;
  problem('');
});

/** The parts of a message with a file, when it is uploaded; null if it could not be. */
async function attached(caption) {
  $('send').disabled = true;
  try {
    const part = await attachment.upload();
    return [{ ...part, ...(caption && { caption }) }];
  } catch (error) {
    failed(error);
    return null;
  } finally {
    $('send').disabled = false;
  }
}

/** What could not be sent comes back with its id: to send it again is the same action. */
function giveBack(draft, text, error) {
  failed(error);
  if ($('text').value) return;
  $('text').value = text;
  open.draft = draft;
}

$('text').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  $('composer').requestSubmit($('send'));
});

/** The event comes some time after the fold opened: what was entered meanwhile stays. */
$('later').addEventListener('toggle', () => {
  if (!$('later').open) $('at').value = '';
  else $('at').value ||= local(new Date(Date.now() + LATER_MS));
});

/** As the field wants it: this device's time, without a zone. */
function local(date) {
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

// --- the rest of the page

$('account').addEventListener('change', () => go($('account').value, ''));

$('new-contact').addEventListener('submit', (event) => {
  event.preventDefault();
  go(open.accountId, $('new-to').value.replace(/\s/g, ''));
  $('new-to').value = '';
});

$('back').addEventListener('click', (event) => {
  event.preventDefault();
  go(open.accountId, '');
});

function failed(error) {
  problem(actionWords(error));
}

/** A watch has ended. Who is not a member reads so above; everything else is said here. */
function refused(error) {
  if (error.code !== 'not-allowed') failed(error);
}

function problem(words) {
  $('problem').textContent = words;
}

/** What holds messages back, from each source that knows: the account, the person's memberships, the stack. */
const notices = { account: '', membership: '', stack: '' };

function notice(source, words) {
  notices[source] = words;
  $('notice').textContent = Object.values(notices).filter(Boolean).join(' ');
}

function showConnection() {
  $('connection').textContent = navigator.onLine ? 'Online' : 'Offline: what you send waits here';
  $('connection').dataset.online = navigator.onLine;
}

addEventListener('online', showConnection);
addEventListener('offline', showConnection);
addEventListener('popstate', show);
openPhone({ open, failed });
// Beside the conversation there is room for the phone; on a small screen it opens on demand.
$('phone-details').open = matchMedia('(min-width: 50.01rem) and (min-height: 30.01rem)').matches;
openSession(config.files);
showConnection();
$('chat').hidden = false;
$('account-label').hidden = false;
if (config.accounts) show();
else followMemberships();
if (config.hasSimulator) watchStack((words) => notice('stack', words));
