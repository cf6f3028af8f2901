// Chromium on the chat page of a running stack, with the documents and the provider's record to compare with.

import { createHmac } from 'node:crypto';

import { chromium } from 'playwright-core';

import { until } from '../../client/harness.mjs';
import { World as Documents } from '../../client/world.mjs';
import { FLAGS } from './flags.mjs';

const SIZE = { width: 1180, height: 720 };
const HERE = '127.0.0.1';
const PING = 'https://www.google.com/images/cleardot.gif'; // by which the SDK finds out whether it is offline
const EXPECTED = /ERR_INTERNET_DISCONNECTED|ERR_CONNECTION_REFUSED|Could not reach Cloud Firestore backend|transport errored/;

export class World {
  #said = [];
  #contexts = [];

  static async start(given) {
    const browser = await chromium.launch({ executablePath: given.chromium, args: FLAGS });
    return new World(given, browser);
  }

  constructor(given, browser) {
    this.given = given;
    this.browser = browser;
    this.isOfficial = given.isOfficial;
    this.documents = new Documents({ host: given.firestore, projectId: given.projectId });
  }

  /** A new account with the page's user as its owner, without a pace unless told. */
  async account(fields = {}) {
    const { id } = await this.documents.account();
    await this.documents.put(`accounts/${id}/members/${this.given.uid}`, { role: 'owner' });
    await this.documents.change(`accounts/${id}`, fields);
    return id;
  }

  /** A browser of its own, with nothing stored. */
  async context(options = {}) {
    const context = await this.browser.newContext({ viewport: SIZE, ...options });
    context.setDefaultTimeout(120_000); // ends a case that hangs; a loaded machine stays far below
    this.#contexts.push(context);
    await context.route((url) => url.hostname !== HERE, (route) => {
      const url = route.request().url();
      if (!url.startsWith(PING)) this.#said.push(`asked for ${url}`);
      return route.abort('internetdisconnected');
    });
    context.on('console', (message) => {
      const isComplaint = ['error', 'warning'].includes(message.type()) && !EXPECTED.test(message.text());
      if (isComplaint) this.#said.push(message.text());
    });
    context.on('weberror', (error) => this.#said.push(`${error.error()}`));
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

  /** What the pages showed, if it failed; and what a page complained of is a failure itself. */
  async after(error) {
    const pages = this.#contexts.flatMap((context) => context.pages());
    const texts = error ? await Promise.all(pages.map((page) => page.innerText('body').catch(String))) : [];
    await Promise.all(this.#contexts.map((context) => context.close()));
    await this.#ask('PUT', '/_sim/faults', {});
    const said = this.#said;
    this.#contexts = [];
    this.#said = [];
    const complaint = !error && said.length ? { error: `the page complained: ${said.join('\n')}` } : {};
    return { ...complaint, seen: [...said, ...texts].join('\n---\n') };
  }

  async end() {
    await this.browser.close();
    await this.documents.end();
  }
}

/** In the page: every state that each message was shown in, also those that nobody had time to look at. */
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
