// Whether the account may send, in words.

import { doc, onSnapshot } from 'firebase/firestore';

const dayAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

/** Calls with `{ words, isKnown }`, now and after each change; the words are empty if it may send. */
export function watchAccountState(db, accountId, onState) {
  const unknown = () => onState({ words: `There is no account ${accountId}, or you are not a member of it.`, isKnown: false });
  let timer;
  const stop = onSnapshot(
    doc(db, 'accounts', accountId),
    (snapshot) => {
      clearTimeout(timer);
      if (!snapshot.exists()) {
        if (!snapshot.metadata.fromCache) unknown(); // offline it is not known yet
        return;
      }
      const tell = () => onState({ words: closedWords(snapshot.data(), Date.now()), isKnown: true });
      const until = snapshot.data().pausedUntil?.toMillis();
      if (until > Date.now()) timer = setTimeout(tell, Math.min(until - Date.now() + 500, 2 ** 31 - 1));
      tell();
    },
    unknown,
  );
  return () => (clearTimeout(timer), stop());
}

function closedWords({ status, pausedUntil }, now) {
  if (status === 'parked') return 'The provider refuses this account. What you send waits until an operator resumes it.';
  if (status === 'paused' && !pausedUntil) return 'This account is paused. What you send waits until an operator resumes it.';
  if (pausedUntil?.toMillis() > now) return `This account is paused until ${dayAndTime.format(pausedUntil.toDate())}. What you send waits.`;
  return '';
}
