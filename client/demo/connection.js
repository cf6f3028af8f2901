// To Firestore: that of a Firebase project, or an emulator. On `outbox dev` the page is signed in already, as the user
// who is a member of its accounts; otherwise people sign in.

import { initializeApp } from 'firebase/app';
import {
  clearIndexedDbPersistence,
  connectFirestoreEmulator,
  initializeFirestore,
  persistentLocalCache,
  persistentMultipleTabManager,
  terminate,
  waitForPendingWrites,
} from 'firebase/firestore';

const PENDING_MS = 3000; // how long sign-out waits for messages that the server does not have yet
const FORGET = 'outbox-forget'; // set from sign-out until the stored documents are gone

/** `{ db, user, signOut }`, once someone is signed in. */
export async function connect(config) {
  const app = initializeApp(config.firebase);
  // Kept by the browser and shared by its tabs: what was sent offline outlives its tab.
  const localCache = persistentLocalCache({ tabManager: persistentMultipleTabManager() });
  const db = initializeFirestore(app, { localCache }, config.databaseId);
  const mine = config.uid ? { mockUserToken: { sub: config.uid } } : {};
  if (config.firestore) connectFirestoreEmulator(db, config.firestore.host, config.firestore.port, mine);
  if (config.uid) return { db, user: { uid: config.uid, getIdToken: async () => (await fetch('../token')).text() } };
  await forgetIfAsked(db);
  const { signIn } = await import('./sign_in.js');
  const { user, leave } = await signIn(app, config);
  return { db, user, signOut: () => signOut(db, leave) };
}

/** The documents of the person who left are not for the next one: another tab may have kept them from being deleted. */
async function forgetIfAsked(db) {
  if (!localStorage.getItem(FORGET)) return;
  await clearIndexedDbPersistence(db).then(() => localStorage.removeItem(FORGET), () => {});
}

async function signOut(db, leave) {
  const late = new Promise((resolve) => { setTimeout(resolve, PENDING_MS, 'late'); });
  const isLate = (await Promise.race([waitForPendingWrites(db), late])) === 'late';
  if (isLate && !confirm('There are messages that wait for a connection. Sign out and lose them?')) return;
  localStorage.setItem(FORGET, 'yes');
  await terminate(db);
  await clearIndexedDbPersistence(db).then(() => localStorage.removeItem(FORGET), () => {});
  await leave(); // the page reloads
}
