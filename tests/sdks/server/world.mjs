// A server's client on one emulator, found as an application finds it: by FIRESTORE_EMULATOR_HOST.

import { randomBytes } from 'node:crypto';

export class World {
  #clients = [];

  /** `sdk` is @google-cloud/firestore, or firebase-admin with the older one that it brings along. */
  static async open({ sdk, host, projectId, isOfficial }) {
    process.env.FIRESTORE_EMULATOR_HOST = host;
    process.env.METADATA_SERVER_DETECTION = 'none'; // no server is asked whether this machine is in Google's cloud
    const connect = sdk === 'firebase-admin' ? await admin() : await plain();
    return new World(connect, projectId, isOfficial);
  }

  constructor({ sdk, client, close }, projectId, isOfficial) {
    this.sdk = sdk;
    this.isOfficial = isOfficial;
    this.#connect = client;
    this.#close = close;
    this.db = this.client(projectId);
  }

  #connect;
  #close;

  client(projectId) {
    const db = this.#connect(projectId);
    this.#clients.push(db);
    return db;
  }

  /** A client with an empty database of its own, for what looks at all of it. */
  emptyDatabase() {
    return this.client(`p-${token()}`);
  }

  /** A collection that was not used before. */
  collection() {
    return this.db.collection(`c-${token()}`);
  }

  document() {
    return this.collection().doc('a');
  }

  async end() {
    await Promise.all(this.#clients.map((db) => db.terminate()));
    await this.#close();
  }
}

async function plain() {
  const sdk = await import('@google-cloud/firestore');
  return { sdk, client: (projectId) => new sdk.Firestore({ projectId }), close: async () => {} };
}

async function admin() {
  const { deleteApp, getApps, initializeApp } = await import('firebase-admin/app');
  const sdk = await import('firebase-admin/firestore');
  return {
    sdk,
    client: (projectId) => sdk.getFirestore(initializeApp({ projectId }, `app-${token()}`)),
    close: () => Promise.all(getApps().map(deleteApp)),
  };
}

/** Writes each `[id, fields]` below the collection, in one batch. */
export async function fill(collection, documents) {
  const batch = collection.firestore.batch();
  for (const [id, fields] of Object.entries(documents)) batch.set(collection.doc(id), fields);
  await batch.commit();
}

export const ids = async (query) => (await query.get()).docs.map(({ id }) => id).join(' ');

export function token() {
  return randomBytes(5).toString('hex');
}
