// Chromium on the console of a running stack, as a person uses it.

import { Pages } from '../browser/pages.mjs';

const EXPECTED = /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|status of 40[134]/;

export class World extends Pages {
  /** A new page; what it complains of fails the case. */
  async page(options = {}) {
    const context = await this.watched({
      expected: EXPECTED,
      timeout: this.given.patienceMs,
      options: { viewport: { width: 1280, height: 800 }, baseURL: this.given.console, timezoneId: 'Europe/Berlin', ...options },
    });
    return context.newPage();
  }

  /** A page on which this person has signed in with one click. */
  async signedIn(name, path = '/', options = {}) {
    const page = await this.page(options);
    await page.goto(path);
    await page.getByRole('button', { name: new RegExp(`^${name}`) }).click();
    await page.getByRole('banner').waitFor();
    return page;
  }
}
