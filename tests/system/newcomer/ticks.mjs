// The page of the tutorial in Chromium: a message is written and sent, and its ticks are watched until it is read.

import { chromium } from 'playwright-core';

import { FLAGS } from '../browser/flags.mjs';

const { browser: executablePath, page: address, reply } = JSON.parse(process.env.WORLD);
const browser = await chromium.launch({ executablePath, args: FLAGS });
const result = { name: 'ticks', error: null, states: [], asked: [] };
try {
  const context = await browser.newContext({ viewport: { width: 800, height: 600 } });
  context.setDefaultTimeout(240_000);
  await context.route(({ hostname }) => hostname !== '127.0.0.1', (route) => {
    result.asked.push(route.request().url());
    return route.abort();
  });
  await context.addInitScript(() => {
    window.states = [];
    new MutationObserver(() => {
      const state = document.querySelector('li')?.dataset.status;
      if (state && window.states.at(-1) !== state) window.states.push(state);
    }).observe(document, { subtree: true, childList: true });
  });
  const page = await context.newPage();
  await page.goto(address);
  await page.getByLabel('Message').fill('Hello');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText('Hello ✓✓ read').waitFor();
  result.states = await page.evaluate(() => window.states);
  console.log('{"name":"sent","error":null}');
  await page.getByText(reply).waitFor();
} catch (error) {
  result.error = String(error.stack);
} finally {
  await browser.close();
}
console.log(JSON.stringify(result));
