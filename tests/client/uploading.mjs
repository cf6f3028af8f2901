// One upload in a process of its own, which can kill itself after a number of bytes: `node uploading.mjs JSON`.

import { fileLink, uploadFile } from '../../client/files.js';

const { url, token, accountId, size, seed, killAfter, read } = JSON.parse(process.argv[2]);
const service = { url, token: () => token, accountId };
const file = new Blob([Uint8Array.from({ length: size }, (_, index) => (index * seed) % 251)], { type: 'image/png' });
const seen = [];
function onProgress({ sent }) {
  seen.push(sent);
  if (killAfter && sent >= killAfter) process.kill(process.pid, 'SIGKILL');
}
try {
  const part = await uploadFile({ ...service, file, filename: 'cat.png', onProgress });
  const link = read ? await fileLink({ ...service, mediaId: part.mediaId }) : null;
  console.log(JSON.stringify({ part, seen, link }));
} catch (error) {
  console.log(JSON.stringify({ code: error.code, message: error.message }));
}
