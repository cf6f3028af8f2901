// Chromium for a suite: it opens contexts, collects what their pages complain of, and closes them after each case.

import { chromium } from 'playwright-core';

import { World as Documents } from '../../client/world.mjs';
import { FLAGS } from './flags.mjs';

const HERE = '127.0.0.1';

export class Pages {
  #complaints = [];
  #contexts = [];

  static async start(given) {
    const browser = await chromium.launch({ executablePath: given.chromium, args: FLAGS });
    return new this(given, browser);
  }

  constructor(given, browser) {
    this.given = given;
    this.browser = browser;
    this.documents = new Documents({ host: given.firestore, projectId: given.projectId });
  }

  /** A context of its own, with nothing stored. An error or a warning fails the case, unless it is `expected`. Requests to
      other machines fail; they fail the case too, unless their address begins with `tolerated`. */
  async watched({ expected, tolerated, timeout, options }) {
    const context = await this.browser.newContext(options);
    context.setDefaultTimeout(timeout);
    this.#contexts.push(context);
    context.on('console', (message) => {
      const isComplaint = ['error', 'warning'].includes(message.type()) && !expected.test(message.text());
      if (isComplaint) this.#complaints.push(message.text());
    });
    context.on('weberror', (error) => this.#complaints.push(`${error.error()}`));
    await context.route((url) => url.hostname !== HERE, (route) => {
      const url = route.request().url();
      if (!tolerated || !url.startsWith(tolerated)) this.#complaints.push(`asked for ${url}`);
      return route.abort('internetdisconnected');
    });
    return context;
  }

  /** After each case: what the pages showed, if it failed. A complaint of a page is a failure itself. */
  async after(error) {
    const pages = this.#contexts.flatMap((context) => context.pages());
    const texts = error ? await Promise.all(pages.map((page) => page.innerText('body').catch(String))) : [];
    await Promise.all(this.#contexts.map((context) => context.close()));
    const complaints = this.#complaints;
    this.#contexts = [];
    this.#complaints = [];
    const complaint = !error && complaints.length ? { error: `the page complained: ${complaints.join('\n')}` } : {};
    return { ...complaint, seen: [...complaints, ...texts].join('\n---\n') };
  }

  async end() {
    await this.browser.close();
    await this.documents.end();
  }
}
