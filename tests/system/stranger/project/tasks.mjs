// Enqueues a task with firebase-admin, and prints what the function of its queue was called with.

import { once } from 'node:events';
import { createServer } from 'node:http';

import { initializeApp } from 'firebase-admin/app';
import { getFunctions } from 'firebase-admin/functions';

import { startEmulator } from './emulator.mjs';

let called;
const dispatched = new Promise((resolve) => (called = resolve));
const functions = createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  response.end();
  called({ path: request.url, body: JSON.parse(Buffer.concat(parts)) });
}).listen(0, '127.0.0.1');
await once(functions, 'listening');

const emulator = await startEmulator(
  '--functions', `127.0.0.1:${functions.address().port}`,
  '--queue', 'projects/bookshop/locations/us-central1/queues/restock',
);
process.env.CLOUD_TASKS_EMULATOR_HOST = emulator.CLOUD_TASKS_EMULATOR_HOST;

initializeApp({ projectId: 'bookshop' });
await getFunctions().taskQueue('restock').enqueue({ book: 'emma', copies: 3 });

console.log(JSON.stringify(await dispatched));
await emulator.stop();
functions.close();
process.exit(0); // firebase-admin keeps its connections
