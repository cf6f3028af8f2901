// The page while parts of its stack stop. Each line tells the test what the page has said; the test stops the next part.

import { World } from './world.mjs';

const world = await World.start(JSON.parse(process.env.WORLD));
const tell = (name, error = null) => console.log(JSON.stringify({ name, error }));
try {
  const chat = await world.chat('shop', '+4915550000001');
  await chat.say('While all is well');
  await chat.becomes('all is well', 'read');
  tell('all is well');
  await chat.tells('the worker does not answer');
  tell('the worker is down');
  await chat.tells('The local stack has stopped. Start it with: outbox dev.');
  await chat.say('Into the void');
  await chat.becomes('Into the void', 'pending');
  tell('the stack is down');
} catch (error) {
  tell('error', String(error.stack));
}
await world.browser.close();
process.exit(0); // what the clients of the stack would still wait for does not come
