// One message by the web SDK: through the chat page in Chromium if there is one to start, else by client/outbox.js in
// Node. It ends when the client's own listener has shown it as read, and prints what was shown and when.

import { threadIdOf, newRequestId, sendMessage, watchMessage } from '../../../client/outbox.js';
import { World as Browsers } from '../browser/world.mjs';
import { Seen } from '../../client/harness.mjs';
import { World as Clients } from '../../client/world.mjs';

const given = JSON.parse(process.env.WORLD);
const { accountId, to, text, uid } = given;

async function byThePage() {
  const world = await Browsers.start(given);
  try {
    const context = await world.context();
    await context.addInitScript(noteTimes);
    const chat = await world.chat(accountId, to, context);
    await chat.page.getByText('Online').waitFor();
    await chat.say(text);
    const requestId = await chat.becomes(text, 'read');
    const { askedAt, shown } = await chat.page.evaluate(() => window.noted);
    return { requestId, askedAt, shown: shown.filter(({ id }) => id === requestId) };
  } finally {
    await world.end();
  }
}

/** In the page: when the form was sent, and when each state of a message was shown. */
function noteTimes() {
  const noted = (window.noted = { askedAt: null, shown: [] });
  addEventListener('submit', () => (noted.askedAt ??= Date.now()), { capture: true });
  const look = (node) => {
    const { id, state } = node.dataset ?? {};
    const last = noted.shown.findLast((one) => one.id === id);
    if (id && state && last?.state !== state) noted.shown.push({ id, state, at: Date.now() });
  };
  new MutationObserver((changes) => {
    for (const { target, addedNodes } of changes) [target, ...addedNodes].forEach(look);
  }).observe(document, { subtree: true, childList: true, attributeFilter: ['data-state'] });
}

async function byNode() {
  const world = new Clients({ host: given.firestore, projectId: given.projectId });
  const db = world.client(uid);
  const requestId = newRequestId();
  const seen = new Seen();
  const stop = watchMessage(db, { threadId: threadIdOf(accountId, to), requestId }, (message) => {
    if (message) seen.add({ state: message.isPending ? 'pending' : message.status, at: Date.now() });
  });
  const askedAt = Date.now();
  await sendMessage(db, { requestId, accountId, to, text, uid });
  await seen.until('read', ({ state }) => state === 'read');
  stop();
  await world.end();
  const shown = seen.values.filter(({ state }, index) => state !== seen.values[index - 1]?.state);
  return { requestId, askedAt, shown };
}

process.stdout.write(`${JSON.stringify(await (given.chromium ? byThePage() : byNode()))}\n`);
process.exit(0); // the SDK keeps its connections for a while
