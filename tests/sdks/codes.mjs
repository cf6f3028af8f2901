// The status codes of gRPC that the cases meet, and the assertion that a call was answered with one.

import assert from 'node:assert/strict';

export const CODES = {
  CANCELLED: 1,
  INVALID_ARGUMENT: 3,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  UNIMPLEMENTED: 12,
};

/** The SDKs for servers tell the number, the one for browsers the name. */
export async function refused(name, promise) {
  const asWebName = name.toLowerCase().replaceAll('_', '-');
  await assert.rejects(promise, (error) => {
    assert.ok([CODES[name], asWebName].includes(error.code), `${error.code} instead of ${name}: ${error.stack}`);
    return true;
  });
}
