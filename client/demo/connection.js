// To Google's Firestore emulator, as the user that `outbox dev` made a member of its accounts.

import { initializeApp } from 'firebase/app';
import {
  connectFirestoreEmulator,
  initializeFirestore,
  persistentLocalCache,
  persistentMultipleTabManager,
} from 'firebase/firestore';

export function connect({ projectId, firestore, uid }) {
  const app = initializeApp({ projectId });
  // Kept by the browser and shared by its tabs: what was sent offline outlives its tab.
  const localCache = persistentLocalCache({ tabManager: persistentMultipleTabManager() });
  const db = initializeFirestore(app, { localCache });
  connectFirestoreEmulator(db, firestore.host, firestore.port, { mockUserToken: { sub: uid } });
  return db;
}
