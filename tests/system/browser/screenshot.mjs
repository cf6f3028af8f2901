// The pictures in docs/: the chat page at three widths, and what two commands print.

import { World } from './world.mjs';

const { folder, terminals, ...given } = JSON.parse(process.env.WORLD);
const world = await World.start(given);
const TO = '+4915550000001';
const OPTIONS = { deviceScaleFactor: 1.5, locale: 'en-GB', colorScheme: 'light' };
const WIDTHS = { chat: [1100, 640], 'chat-lying': [667, 375], 'chat-upright': [320, 568] };

const open = async ([width, height]) => world.chat('shop', TO, await world.context({ ...OPTIONS, viewport: { width, height } }));
const chat = await open(WIDTHS.chat);
await chat.say('Good morning Ada, your bouquet is ready.');
await chat.becomes('bouquet', 'read');
await world.inbound('shop', TO, 'Lovely! Are you open on Saturday?');
await chat.message('Saturday').waitFor();
await chat.say('Yes, from 9 to 4.');
await chat.becomes('9 to 4', 'read');
await world.faults('shop', { errorRate: 1, errorCode: 'rejected' });
await chat.say('And here is a link you cannot use');
await chat.becomes('link', 'failed');
await world.faults('shop', { receiptLossRate: 1 });
await chat.say('Shall we keep it in the cold room?');
await chat.becomes('cold room', 'sent');
await chat.sayAt('Your bouquet is waiting for you.', new Date(Date.now() + 86_400_000));
await chat.becomes('waiting for you', 'scheduled');
await world.inbound('shop', '+4915550000002', 'Do you deliver?');
await chat.page.getByRole('link', { name: 'Grace' }).getByText('1', { exact: true }).waitFor();
for (const [name, size] of Object.entries(WIDTHS)) {
  const shown = name === 'chat' ? chat : await open(size);
  await shown.becomes('waiting for you', 'scheduled');
  await shown.page.screenshot({ path: `${folder}/${name}.png` });
}

const page = await (await world.context({ viewport: { width: 1100, height: 100 } })).newPage();
for (const [name, html] of Object.entries(terminals)) {
  await page.setContent(html);
  await page.locator('pre').screenshot({ path: `${folder}/${name}.png` });
}

await world.end();
console.log('{"name":"screenshot","error":null}');
