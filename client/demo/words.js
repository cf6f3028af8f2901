// What people read when something goes wrong. Codes and exceptions are for developers: the console has them.

/** By `error.code` of a message and `lastError.code` of an outbox document. */
const DELIVERY = {
  provider_timeout: 'The provider did not answer.',
  provider_unavailable: 'The provider is not available.',
  rate_limited: 'The provider asks for a slower pace.',
  recipient_invalid: 'This number does not exist.',
  rejected: 'The provider refused the message.',
  auth: 'The provider refuses this account.',
  not_connected: 'The account is not connected to its provider.',
  window_closed: 'It cannot be sent at this time.',
  deadline_passed: 'It was not sent in time.',
  max_attempts: 'It could not be sent, after several tries.',
  invalid_message: 'The message is not valid.',
  media_missing: 'Its file is missing.',
  outcome_unknown: 'It is unknown whether it was sent.',
};

/** By the code of an OutboxError, of the SDK, or of the simulated phone. */
const ACTIONS = {
  'not-allowed': 'You may not do this: you are not a member of the account, or only read it.',
  'permission-denied': 'You may not do this: you are not a member of the account, or only read it.',
  'too-late': 'This time has passed. Choose a later one.',
  'invalid-message': 'This cannot be sent: check the number and the length of the text.',
  'request-id-taken': 'This was sent already, with another text. Write it again.',
  'not-found': 'This message does not exist any more.',
  unavailable: 'No connection. What you send waits here.',
  phone: 'The simulated phone does not answer.',
};
const ANYTHING = 'Something went wrong. Try again, or reload the page.';

export function deliveryWords({ code }) {
  return DELIVERY[code] ?? 'The message could not be sent.';
}

export function actionWords(error) {
  console.info(error);
  return ACTIONS[error.code] ?? ANYTHING;
}
