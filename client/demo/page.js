// The page: which account and which contact, and what is shown of them. What it knows of the outbox is ../outbox.js.

import {
  markRead,
  newRequestId,
  scheduleMessage,
  sendMessage,
  threadIdOf,
  watchThread,
  watchThreads,
  watchWaiting,
} from '../outbox.js';
import { watchAccountState } from './account.js';
import { connect } from './connection.js';
import { showMessages } from './messages.js';
import { lookAtPhone, openPhone } from './phone.js';
import { watchStack } from './stack.js';
import { showThreads } from './threads.js';
import { actionWords } from './words.js';

const $ = (id) => document.getElementById(id);
const LATER_MS = 5 * 60_000;

const config = await (await fetch('/config.json')).json();
const db = connect(config);

/** What is open now, and how to stop watching it. */
const open = { accountId: '', to: '', draft: newRequestId(), stop: [] };

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
  const accountId = wanted.get('account') || config.accounts[0].id;
  const to = wanted.get('to') ?? '';
  open.stop.forEach((stop) => stop());
  Object.assign(open, { accountId, to, draft: newRequestId(), stop: [] });
  document.body.dataset.view = to ? 'conversation' : 'list';
  showAccounts(accountId);
  problem('');
  notice('account', '');
  watchAccount(accountId, to);
  $('contact').textContent = to ? nameOf(to) : 'Pick a contact';
  $('composer').hidden = !to;
  $('phone').hidden = !to || !config.hasSimulator;
  $('messages').replaceChildren();
  if (to) watchConversation(accountId, to);
  if (to && config.hasSimulator) lookAtPhone(to).catch(failed);
}

function showAccounts(accountId) {
  const known = config.accounts.some(({ id }) => id === accountId);
  const accounts = known ? config.accounts : [...config.accounts, { id: accountId, name: accountId }];
  $('account').replaceChildren(...accounts.map(({ id, name }) => new Option(name, id, false, id === accountId)));
}

function nameOf(to) {
  return config.contacts.find((contact) => contact.to === to)?.name ?? to;
}

// --- what is watched

function watchAccount(accountId, to) {
  const contacts = config.contacts.map((contact) => contact.to);
  const render = (threads) => {
    showThreads($('threads'), { accountId, threads, contacts, to, nameOf, address, go });
    const current = threads.find((thread) => thread.to === to);
    if (current?.unreadCount && document.visibilityState === 'visible') markRead(db, current.id).catch(failed);
  };
  render([]);
  open.stop.push(
    watchThreads(db, accountId, render, { onError: refused }),
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
  const render = () => showMessages($('messages'), { db, messages, waiting, failed });
  open.stop.push(
    watchThread(db, threadId, (found) => ((messages = found), render()), { onError: refused }),
    watchWaiting(db, { accountId, threadId }, (found) => ((waiting = found), render()), { onError: refused }),
  );
}

// --- what is sent

$('composer').addEventListener('submit', (event) => {
  event.preventDefault();
  const text = $('text').value.trim();
  if (!text) return; // the second click of two finds nothing left to send
  const { accountId, to, draft } = open;
  const message = { requestId: draft, accountId, to, text, uid: config.uid };
  const isLater = event.submitter?.value === 'later';
  const at = new Date($('at').value);
  const sending = isLater ? scheduleMessage(db, { ...message, at }) : sendMessage(db, message);
  // Not awaited: offline it would not end. The thread shows it already.
  sending.catch((error) => giveBack(draft, text, error));
  open.draft = newRequestId();
  $('text').value = '';
  $('later').open = false;
  problem('');
});

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

$('later').addEventListener('toggle', () => {
  if ($('later').open) $('at').value = local(new Date(Date.now() + LATER_MS));
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

/** What holds messages back, from each source that knows: the account, the stack. */
const notices = { account: '', stack: '' };

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
showConnection();
show();
if (config.hasSimulator) watchStack((words) => notice('stack', words));
