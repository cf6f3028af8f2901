// Opens the shop's page in Chromium (CHROMIUM names it), and prints what its transactions returned.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

import { chromium } from 'playwright-core';

import { startEmulator } from './emulator.mjs';

const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'];
const { version } = JSON.parse(readFileSync('node_modules/firebase/package.json'));
const imports = {
  'firebase/app': '/node_modules/firebase/firebase-app.js',
  'firebase/firestore': '/node_modules/firebase/firebase-firestore.js',
  [`https://www.gstatic.com/firebasejs/${version}/firebase-app.js`]: '/node_modules/firebase/firebase-app.js',
};
const page = `<!doctype html><link rel="icon" href="data:,">
<script type="importmap">${JSON.stringify({ imports })}</script>`;

const files = createServer((request, response) => {
  const isPage = request.url === '/';
  response.setHeader('content-type', isPage ? 'text/html' : 'text/javascript');
  response.end(isPage ? page : readFileSync(`.${request.url}`));
}).listen(0, '127.0.0.1');
await once(files, 'listening');

const emulator = await startEmulator();
const [host, port] = emulator.FIRESTORE_EMULATOR_HOST.split(':');
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
const tab = await browser.newPage();
await tab.goto(`http://127.0.0.1:${files.address().port}/`);
const bought = await tab.evaluate(
  async ([host, port]) => (await import('/page/shop.mjs')).buy(host, port),
  [host, Number(port)],
);
console.log(JSON.stringify(bought));
await browser.close();
await emulator.stop();
files.close();
