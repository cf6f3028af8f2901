// The cases of web.mjs in Chromium: files come from this directory, and Firestore from the emulator that WORLD names.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

import { chromium } from 'playwright-core';

import { FLAGS } from '../system/browser/flags.mjs';

const ROOT = new URL('../../', import.meta.url);
const SDK = '/node_modules/firebase';
const VERSION = JSON.parse(readFileSync(new URL('package.json', ROOT))).devDependencies.firebase;
const { chromium: executablePath, ...world } = JSON.parse(process.env.WORLD);

const imports = {
  'firebase/app': `${SDK}/firebase-app.js`,
  'firebase/firestore': `${SDK}/firebase-firestore.js`,
  [`https://www.gstatic.com/firebasejs/${VERSION}/firebase-app.js`]: `${SDK}/firebase-app.js`,
  'node:assert/strict': '/tests/sdks/browser_assert.mjs',
};
const environment = { WORLD: JSON.stringify(world), CASES: process.env.CASES };
const page = `<!doctype html>
<link rel="icon" href="data:,">
<script type="importmap">${JSON.stringify({ imports })}</script>
<script>
  globalThis.process = { env: ${JSON.stringify(environment)}, stdout: { write: (line) => console.log(line) } };
</script>
<script type="module">
  import '/tests/sdks/web.mjs';
  console.log('over');
</script>`;

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://here');
  const isPage = pathname === '/';
  response.setHeader('content-type', isPage ? 'text/html' : 'text/javascript');
  response.end(isPage ? page : readFileSync(new URL(`.${pathname}`, ROOT)));
}).listen(0, '127.0.0.1');
await once(server, 'listening');

const browser = await chromium.launch({ executablePath, args: FLAGS });
const tab = await browser.newPage();
await new Promise((resolve, reject) => {
  tab.on('console', (message) => (message.text() === 'over' ? resolve() : process.stdout.write(`${message.text().trim()}\n`)));
  tab.on('pageerror', reject);
  tab.goto(`http://127.0.0.1:${server.address().port}/`).catch(reject);
});
await browser.close();
server.close();
