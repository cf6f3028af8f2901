// A browser's part: seals and sends each text of standard input, waits until it was sent, and reads it back.

import { text } from 'node:stream/consumers';

import { deleteApp, initializeApp } from 'firebase/app';
import { connectFirestoreEmulator, getFirestore } from 'firebase/firestore';

import { sendMessage, threadIdOf, watchMessage } from '../../client/outbox.js';
import { openMessages, sealMessage } from '../../client/sealing.js';

const { firestore, project, functions, token, accountId, uid, messages } = JSON.parse(await text(process.stdin));
const app = initializeApp({ projectId: project });
const db = getFirestore(app);
const [host, port] = firestore.split(':');
connectFirestoreEmulator(db, host, Number(port), { mockUserToken: { sub: uid } });

async function sent({ requestId, to, words }) {
  const sealed = await sealMessage(db, { requestId, accountId, to, text: words, uid });
  const first = await sendMessage(db, sealed);
  const again = await sendMessage(db, await sealMessage(db, { requestId, accountId, to, text: words, uid }));
  const message = await new Promise((resolve) => {
    const stop = watchMessage(db, { threadId: threadIdOf(accountId, to), requestId }, (seen) => {
      if (seen && !['queued'].includes(seen.status)) {
        stop();
        resolve(seen);
      }
    });
  });
  const [opened] = await openMessages(functions, token, accountId, [message]);
  return { isNew: [first.isNew, again.isNew], status: message.status, types: message.parts.map((part) => part.type), parts: opened.parts };
}

console.log(JSON.stringify(await Promise.all(messages.map(sent))));
await deleteApp(app);
process.exit(0);
