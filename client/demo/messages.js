// The messages of a conversation, each with how far it has come.

import { cancel } from '../outbox.js';
import { showFiles } from './files.js';
import { deliveryWords } from './words.js';

const SOON_MS = 1500;
const time = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const dayAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

const CLOCK = '<circle cx="8" cy="8" r="6"/><path d="M8 4.5V8l2.5 1.5"/>';
const TICK = '<path d="M2.5 8.5l3.5 3.5 7-8"/>';
const TICKS = '<path d="M.5 8.5l3.5 3.5 7-8"/><path d="M7 11l1 1 7-8"/>';
const CROSS = '<circle cx="8" cy="8" r="6"/><path d="M5.8 5.8l4.4 4.4m0-4.4l-4.4 4.4"/>';
const BANG = '<circle cx="8" cy="8" r="6"/><path d="M8 4.5v4m0 2.5v.2"/>';

/** By what is shown of a message: its drawing, and its words for who cannot see it. */
const MARKS = {
  pending: [CLOCK, 'waiting for a connection'],
  queued: [CLOCK, 'queued'],
  scheduled: [CLOCK, 'scheduled'],
  cancelling: [CROSS, 'being cancelled'],
  uncertain: [CLOCK, 'perhaps sent'],
  sent: [TICK, 'sent'],
  delivered: [TICKS, 'delivered'],
  read: [TICKS, 'read'],
  failed: [BANG, 'failed'],
  skipped: [CROSS, 'skipped'],
  cancelled: [CROSS, 'cancelled'],
};

/** `waiting` knows more of a queued message than the message itself: its time, its trouble, a wish to cancel it. */
export function showMessages(list, { db, accountId, files, messages, waiting, failed }) {
  const wasAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  const entries = new Map([...list.children].map((entry) => [entry.dataset.id, entry]));
  const shown = messages.map((message) => {
    const entry = entries.get(message.id) ?? newEntry(message);
    update(entry, message, waiting.find(({ requestId }) => requestId === message.id));
    if (message.hasFiles) showFiles(entry.querySelector('.files'), { files, accountId, parts: message.parts });
    return entry;
  });
  // Only what changed is touched, so that nothing is read out twice and no button loses its focus.
  shown.forEach((entry, index) => {
    if (list.children[index] !== entry) list.insertBefore(entry, list.children[index] ?? null);
  });
  while (list.children.length > shown.length) list.lastElementChild.remove();
  if (wasAtEnd) list.scrollTop = list.scrollHeight;

  function newEntry({ id, direction, parts }) {
    const entry = document.createElement('li');
    entry.className = `message ${direction}`;
    entry.dataset.id = id;
    entry.innerHTML = '<div class="files"></div><p class="text"></p><p class="meta"><time></time><span class="mark"></span></p>'
      + '<p class="reason"></p><button type="button" class="cancel" hidden>Cancel</button>';
    entry.querySelector('.text').textContent = parts.map(wordsOf).join('\n');
    entry.querySelector('.cancel').addEventListener('click', () => cancel(db, id).catch(failed));
    return entry;
  }
}

function update(entry, message, entryInOutbox) {
  const state = stateOf(message, entryInOutbox);
  const reason = reasonOf(state, message, entryInOutbox);
  const at = message.createdAt;
  entry.querySelector('time').textContent = at ? time.format(at) : '';
  entry.querySelector('time').dateTime = at ? at.toISOString() : '';
  entry.querySelector('.reason').textContent = reason;
  entry.querySelector('.reason').title = message.error?.code ?? entryInOutbox?.lastError?.code ?? '';
  entry.querySelector('.cancel').hidden = state !== 'scheduled';
  if (message.direction === 'inbound' || entry.dataset.state === state) return;
  entry.dataset.state = state;
  const [drawing, words] = MARKS[state];
  const mark = entry.querySelector('.mark');
  mark.innerHTML = `<svg viewBox="0 0 16 16" aria-hidden="true">${drawing}</svg><span class="unseen"></span>`;
  mark.lastElementChild.textContent = words;
  mark.title = words;
}

function stateOf({ status, isPending }, waiting) {
  if (isPending) return 'pending';
  if (status !== 'queued' || !waiting) return status;
  if (waiting.isCancelling) return 'cancelling';
  if (waiting.status === 'uncertain') return 'uncertain';
  return waiting.at && waiting.at.getTime() > Date.now() + SOON_MS ? 'scheduled' : 'queued';
}

function reasonOf(state, message, waiting) {
  if (message.error) return deliveryWords(message.error);
  if (state === 'cancelling') return 'Cancelled. It will not be sent unless it is on its way.';
  if (state === 'cancelled') return 'Cancelled';
  const trouble = waiting?.lastError ? deliveryWords(waiting.lastError) : '';
  if (state === 'uncertain') return 'Perhaps sent.';
  if (state !== 'scheduled') return '';
  const at = dayAndTime.format(waiting.at);
  return trouble ? `${trouble} It is tried again ${at}.` : `Goes out ${at}`;
}

function wordsOf(part) {
  if (part.type === 'text') return part.text;
  if (part.type === 'media') return [`[${part.mimeType}]`, part.filename, part.caption].filter(Boolean).join(' ');
  return [`[${part.name}]`, ...part.params].join(' ');
}
