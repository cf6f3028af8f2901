// What client/message.js says to each message on standard input: null, or the sentence of its refusal.

import { text } from 'node:stream/consumers';

import { checked } from '../../client/message.js';

const verdicts = JSON.parse(await text(process.stdin)).map(({ at, sendBy, ...message }) => {
  const times = { ...(at && { at: new Date(at) }), ...(sendBy && { sendBy: new Date(sendBy) }) };
  try {
    checked({ ...message, ...times });
    return null;
  } catch (error) {
    if (error.name !== 'OutboxError') throw error;
    return error.message;
  }
});
console.log(JSON.stringify(verdicts));
