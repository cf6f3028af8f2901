// The pictures of the console: those in docs/, and every page at every width for a person who changes the pages.

import { open } from './shop_window.mjs';
import { World } from './world.mjs';

const { folder, shots, ...given } = JSON.parse(process.env.WORLD);
const TALLEST = 2_400;
const world = await World.start(given);
const names = await open(world.documents);
await fetch(`http://${given.firestore}/v1/projects/${given.projectId}/databases/(default)/documents/runs/${names.RUN}`); // the rules refuse it
const operator = await world.signedIn('Olivia', '/messages?account=shop&status=failed');
await operator.getByRole('rowheader').getByRole('link').first().click();
await operator.getByRole('button', { name: 'Send it again' }).click();
await operator.getByText('is back in the queue').waitFor();
await operator.goto('/audit');
await operator.getByRole('button', { name: 'Run the audit' }).click();
await operator.getByText(/Every invariant holds|Invariant/).first().waitFor();

/** What is shown after a form was filled in. */
const STEPS = {
  async 'reminder-check'(page) {
    await page.getByLabel('Targets').fill('to,name\n+4915550000001,Ada\n+4915550000002,Ben\n+4915550000003,Carla');
    await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Hello {name}, the sale begins on Saturday at nine.');
    await page.getByLabel('Day and time').fill('2090-01-31T09:00');
    await page.getByRole('button', { name: 'See what it will do' }).click();
    await page.getByRole('heading', { name: 'Check the reminder' }).waitFor();
  },
};

const pages = new Map();
for (const { name, path, width, height, colorScheme, person, isWhole, step } of shots) {
  const known = `${person} ${colorScheme}`;
  const to = path.replace(/[A-Z]{3,}/g, (word) => names[word] ?? word);
  if (!pages.has(known)) pages.set(known, await world.signedIn(person, '/', { colorScheme, deviceScaleFactor: 1, timezoneId: 'Europe/Berlin' }));
  const page = pages.get(known);
  await page.setViewportSize({ width, height });
  await page.goto(to);
  await page.getByRole('main').waitFor();
  if (step) await STEPS[step](page);
  const whole = isWhole ? await page.evaluate(() => document.documentElement.scrollHeight) : height;
  if (isWhole) await page.setViewportSize({ width, height: Math.min(Math.max(whole, height), TALLEST) });
  await page.screenshot({ path: `${folder}/${name}.png` });
}
await world.end();
console.log('{"name":"screenshot","error":null}');
