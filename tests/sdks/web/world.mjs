// Clients as tabs or devices have them, each with a cache of its own, on one emulator.

import { deleteApp, initializeApp } from 'firebase/app';
import {
  collection,
  connectFirestoreEmulator,
  doc,
  getDocFromServer,
  getDocs,
  getFirestore,
  onSnapshot,
  setLogLevel,
  writeBatch,
} from 'firebase/firestore';

import { Seen } from '../../client/harness.mjs';

setLogLevel('silent'); // lost connections and refused writes are what many cases are about

export class World {
  #apps = [];
  #lasting = [];

  constructor({ host, projectId, isOfficial }) {
    const [address, port] = host.split(':');
    this.address = address;
    this.port = Number(port);
    this.projectId = projectId;
    this.isOfficial = isOfficial;
    this.db = this.client();
    this.reader = this.client();
    this.#lasting = [...this.#apps];
  }

  client(projectId = this.projectId) {
    const app = initializeApp({ projectId }, `app-${token()}`);
    this.#apps.push(app);
    const db = getFirestore(app);
    connectFirestoreEmulator(db, this.address, this.port);
    return db;
  }

  /** A client with an empty database of its own, for what looks at all of it. */
  emptyDatabase() {
    return this.client(`p-${token()}`);
  }

  /** A collection that was not used before. */
  collection(db = this.db) {
    return collection(db, `c-${token()}`);
  }

  document(db = this.db) {
    return doc(this.collection(db), 'a');
  }

  /** After each case: its own clients are closed, since a browser has few connections to one host. */
  async after() {
    const own = this.#apps.filter((app) => !this.#lasting.includes(app));
    this.#apps = [...this.#lasting];
    await Promise.all(own.map(deleteApp));
  }

  async end() {
    await Promise.all(this.#apps.map(deleteApp));
  }
}

/** The same document or collection for another client. */
export const seenBy = (db, reference) => (
  reference.type === 'document' ? doc(db, reference.path) : collection(db, reference.path)
);

/** What the server has. */
export const stored = async (document) => (await getDocFromServer(document)).data();

/** Writes each `[id, fields]` below the collection, in one batch. */
export async function fill(where, documents) {
  const batch = writeBatch(where.firestore);
  for (const [id, fields] of Object.entries(documents)) batch.set(doc(where, id), fields);
  await batch.commit();
}

export const ids = async (query) => (await getDocs(query)).docs.map(({ id }) => id).join(' ');

/** What a listener gets, as `tell` puts it. */
export function watched(query, tell, options = {}) {
  const seen = new Seen();
  const onError = (error) => seen.add(`error: ${error.code}`);
  const stop = onSnapshot(query, options, (snapshot) => seen.add(tell(snapshot)), onError);
  return { seen, stop };
}

export const is = (wanted) => (value) => value === wanted;

export function token() {
  return crypto.randomUUID().slice(-12);
}
