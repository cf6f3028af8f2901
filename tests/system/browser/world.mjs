// Chromium on the chat page of a running stack, with the documents and the provider's record to compare with.

import { createHmac } from 'node:crypto';

import { until } from '../../client/harness.mjs';
import { Pages } from './pages.mjs';

const SIZE = { width: 1180, height: 720 };
const PING = 'https://www.google.com/images/cleardot.gif'; // by which the SDK finds out whether it is offline
const EXPECTED = /ERR_INTERNET_DISCONNECTED|ERR_CONNECTION_REFUSED|Could not reach Cloud Firestore backend|transport errored/;

export class World extends Pages {
  constructor(given, browser) {
    super(given, browser);
    this.isOfficial = given.isOfficial;
  }

  /** A new account with the page's user as its owner, without a pace unless told. */
  async account(fields = {}) {
    const { id } = await this.documents.account();
    await this.documents.put(`accounts/${id}/members/${this.given.uid}`, { role: 'owner' });
    await this.documents.change(`accounts/${id}`, fields);
    return id;
  }

  /** A browser of its own, with nothing stored. `expects` are complaints of the case itself, and `asks` the beginning of
      addresses that it asks for in vain. */
  async context({ expects, asks = PING, ...options } = {}) {
    const context = await this.watched({
      expected: expects ? new RegExp(`${EXPECTED.source}|${expects.source}`) : EXPECTED,
      tolerated: asks,
      timeout: 120_000, // ends a case that hangs; a loaded machine stays far below
      options: { viewport: SIZE, ...options },
    });
    await context.addInitScript(remember);
    return context;
  }

  async chat(accountId, to, context) {
    const page = await (context ?? (await this.context())).newPage();
    await page.goto(`${this.given.page}/demo/?${new URLSearchParams({ account: accountId, ...(to && { to }) })}`);
    return new Chat(page);
  }

  // --- the provider

  async calls(accountId) {
    const answer = await fetch(`${this.given.provider}/_sim/calls?accountId=${accountId}`);
    return answer.json();
  }

  /** Of this account alone. */
  async faults(accountId, faults) {
    await this.#ask('PUT', '/_sim/faults', { ...faults, accounts: [accountId] });
  }

  async inbound(accountId, from, text) {
    await this.#ask('POST', '/_sim/inbound', { accountId, from, text });
  }

  async #ask(method, path, body) {
    const answer = await fetch(`${this.given.provider}${path}`, { method, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
  }

  /** A receipt as the provider signs it, taken before this returns. */
  async receipt(accountId, providerMessageId, status) {
    const event = { type: 'receipt', providerMessageId, status, at: new Date().toISOString() };
    const body = JSON.stringify({ events: [event] });
    const moment = Math.floor(Date.now() / 1000);
    const mac = createHmac('sha256', this.given.webhookSecret).update(`${moment}.${body}`).digest('hex');
    const headers = { 'X-Simulated-Signature': `t=${moment},v1=${mac}` };
    const answer = await fetch(`${this.given.functions}/simulated/${accountId}`, { method: 'POST', body, headers });
    if (!answer.ok) throw new Error(`the receipt was answered ${answer.status}: ${await answer.text()}`);
  }

  // --- after each case

  async after(error) {
    await this.#ask('PUT', '/_sim/faults', {});
    return super.after(error);
  }
}

/** In the page: every state that each message was shown in, also those that passed too quickly to be seen. */
function remember() {
  window.seenStates = {};
  const look = (node) => {
    const { id, state } = node.dataset ?? {};
    if (!id || !state) return;
    const states = (window.seenStates[id] ??= []);
    if (states.at(-1) !== state) states.push(state);
  };
  new MutationObserver((changes) => {
    for (const { target, addedNodes } of changes) [target, ...addedNodes].forEach(look);
  }).observe(document, { subtree: true, childList: true, attributeFilter: ['data-state'] });
}

/** The page, as a person uses it. */
export class Chat {
  constructor(page) {
    this.page = page;
    this.send = page.getByRole('button', { name: 'Send', exact: true });
    this.text = page.getByRole('textbox', { name: 'Message' });
  }

  async say(text) {
    await this.text.fill(text);
    await this.send.click();
  }

  /** At this time, by the clock of the page. */
  async sayAt(text, date) {
    await this.text.fill(text);
    await this.page.getByText('Send later').click();
    const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
    await this.page.getByLabel('At', { exact: true }).fill(local);
    await this.page.getByRole('button', { name: 'Schedule' }).click();
  }

  /** What holds messages back: the account, the stack. */
  async tells(words) {
    await this.page.locator('#notice').getByText(words).waitFor();
  }

  message(text) {
    return this.page.getByRole('log').getByRole('listitem').filter({ hasText: text });
  }

  /** Its id, once it is shown in this state. */
  async becomes(text, state) {
    const entry = this.page.locator(`#messages li[data-state="${state}"]`).filter({ hasText: text });
    await entry.waitFor({ timeout: 120_000 });
    return entry.getAttribute('data-id');
  }

  /** All states that the message was shown in, in order. */
  async states(id) {
    return this.page.evaluate((wanted) => window.seenStates[wanted], id);
  }

  /** What is shown, one line a message: `text [state]`. */
  async shown() {
    return this.page.$$eval('#messages li', (entries) =>
      entries.map((entry) => `${entry.querySelector('.text').textContent} [${entry.dataset.state ?? 'inbound'}]`),
    );
  }

  async shows(...lines) {
    const wanted = lines.join(' | ');
    await until(wanted, () => this.shown(), (shown) => shown.join(' | ') === wanted);
  }
}
