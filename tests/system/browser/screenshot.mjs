// docs/chat.png: a conversation with everything in it that the page can show.

import { World } from './world.mjs';

const { file, ...given } = JSON.parse(process.env.WORLD);
const world = await World.start(given);
const TO = '+4915550000001';
const context = await world.context({
  viewport: { width: 1100, height: 640 },
  deviceScaleFactor: 2,
  locale: 'en-GB',
  colorScheme: 'light',
});
const chat = await world.chat('shop', TO, context);

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
await chat.page.screenshot({ path: file });

await world.end();
console.log('{"name":"screenshot","error":null}');
