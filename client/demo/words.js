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
  opted_out: 'The recipient asked for no more messages of this kind.',
  outside_hours: 'There was no time left within the hours of the recipient.',
  new_contact_capped: 'The account wrote to as many new people today as it may.',
  frequency_capped: 'The recipient got enough marketing messages lately.',
  deadline_passed: 'It was not sent in time.',
  max_attempts: 'It could not be sent, after several tries.',
  invalid_message: 'The message is not valid.',
  media_missing: 'Its file is missing.',
  quota_exceeded: 'The plan of this account is used up. Choose a larger plan.',
  cannot_open: 'The sealed message cannot be opened.',
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
  'invalid-file': 'This file cannot be sent: it is too large, empty, or of another type.',
  'cannot-upload': 'The file could not be uploaded. Try again: it goes on where it stopped.',
  unavailable: 'No connection. What you send waits here.',
  session: 'The phone could not be connected or disconnected.',
  phone: 'The simulated phone does not answer.',
};

/** By the code of an error of Firebase Auth. */
const SIGN_IN = {
  'auth/invalid-credential': 'The email or the password is wrong.',
  'auth/invalid-email': 'This is not an email address.',
  'auth/user-disabled': 'This user is locked. Ask an owner of the project.',
  'auth/too-many-requests': 'Too many tries. Wait a few minutes, or set a new password.',
  'auth/network-request-failed': 'No connection to the sign-in service. Try again.',
  'auth/internal-error': 'No connection to the sign-in service. Try again.', // where Google's script cannot be loaded
  'auth/popup-closed-by-user': 'The window was closed before the sign-in was complete.',
  'auth/cancelled-popup-request': 'The window was closed before the sign-in was complete.',
  'auth/popup-blocked': 'The browser blocked the window for the sign-in. Allow it, and try again.',
  'auth/operation-not-allowed': 'This way to sign in is switched off for this project.',
  'auth/unauthorized-domain': 'The project does not allow sign-in on this address.',
};
const ANYTHING = 'Something went wrong. Try again, or reload the page.';

export function deliveryWords({ code }) {
  return DELIVERY[code] ?? 'The message could not be sent.';
}

export function actionWords(error) {
  console.info(error);
  return ACTIONS[error.code] ?? ANYTHING;
}

export function signInWords(error) {
  console.info(error);
  return SIGN_IN[error.code] ?? ANYTHING;
}
