// Google's SDKs for servers: every case below server/, with the package that WORLD names.

import { run } from '../client/harness.mjs';

import './server/values.mjs';
import './server/documents.mjs';
import './server/batches.mjs';
import './server/transactions.mjs';
import './server/queries.mjs';
import './server/listings.mjs';
import './server/listening.mjs';
import './server/refusals.mjs';
import { World } from './server/world.mjs';

const world = await World.open(JSON.parse(process.env.WORLD));
await run(world);
await world.end();
