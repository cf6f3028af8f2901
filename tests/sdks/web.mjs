// The SDK for browsers, in Node, where it speaks gRPC: every case below web/.

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
