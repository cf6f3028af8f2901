// Starts the installed command, and ends it with `stop`.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export async function startEmulator(...options) {
  const ports = ['--port', '0', '--tasks-port', '0'];
  const child = spawn('firestore-emulator', ['--json', '--with-parent', ...ports, ...options], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const failed = new Promise((_, reject) => {
    child.once('error', reject);
    child.once('exit', (status) => reject(new Error(`firestore-emulator ended with ${status}`)));
  });
  failed.catch(() => {});
  const [line] = await Promise.race([firstLine(child.stdout), failed]);
  return {
    ...JSON.parse(line),
    stop: () => new Promise((resolve) => child.once('exit', resolve) && child.kill('SIGINT')),
  };
}

function firstLine(stream) {
  return new Promise((resolve) => createInterface({ input: stream }).once('line', (line) => resolve([line])));
}
