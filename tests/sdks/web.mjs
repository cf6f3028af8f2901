// The SDK for browsers: every case below web/. In Node it speaks gRPC; in a browser (web_in_browser.mjs) WebChannel.

import { run } from '../client/harness.mjs';

import './web/values.mjs';
import './web/documents.mjs';
import './web/transactions.mjs';
import './web/queries.mjs';
import './web/listening.mjs';
import './web/offline.mjs';
import './web/refusals.mjs';
import { World } from './web/world.mjs';

const world = new World(JSON.parse(process.env.WORLD));
await run(world);
await world.end();
