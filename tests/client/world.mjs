// Real SDK clients on one emulator, each signed in as a user of its own, and the documents as the server has them.

import { randomBytes } from 'node:crypto';

import { deleteApp, initializeApp } from 'firebase/app';
import {
  collection,
  connectFirestoreEmulator,
  doc,
  getDoc,
  getDocs,
  getFirestore,
  setDoc,
  setLogLevel,
  updateDoc,
  writeBatch,
} from 'firebase/firestore';

setLogLevel('silent'); // refused writes are what many cases are about

export class World {
  #apps = [];

  constructor({ host, projectId, isOfficial = false }) {
    this.isOfficial = isOfficial;
    [this.host, this.port] = host.split(':');
    this.projectId = projectId;
    this.owner = this.client('owner');
  }

  /** A client of its own, as another tab or device has it. `uid` null: signed out. */
  client(uid) {
    const app = initializeApp({ projectId: this.projectId }, `${uid}-${this.#apps.length}`);
    this.#apps.push(app);
    const db = getFirestore(app);
    // 'owner' as a token is the emulator's way past the rules; everybody else gets an unsigned token.
    const token = uid === null ? {} : { mockUserToken: uid === 'owner' ? uid : { sub: uid } };
    connectFirestoreEmulator(db, this.host, Number(this.port), token);
    return db;
  }

  /** A new account, and its members by role: `{owner: uid, agent: uid, viewer: uid}`. */
  async account() {
    const id = `acc-${token()}`;
    const members = { owner: `owner-${token()}`, agent: `agent-${token()}`, viewer: `viewer-${token()}` };
    const batch = writeBatch(this.owner);
    const fields = { provider: 'simulated', status: 'active', pace: { perMinute: 0 } };
    batch.set(doc(this.owner, 'accounts', id), fields);
    for (const [role, uid] of Object.entries(members)) {
      batch.set(doc(this.owner, 'accounts', id, 'members', uid), { role });
    }
    await batch.commit();
    return { id, ...members };
  }

  async put(path, fields) {
    await setDoc(doc(this.owner, path), fields);
  }

  /** As the worker does. */
  async change(path, fields) {
    await updateDoc(doc(this.owner, path), fields);
  }

  async read(path) {
    return (await getDoc(doc(this.owner, path))).data();
  }

  /** All documents of a collection: `{ id, data }`. */
  async list(path) {
    return (await getDocs(collection(this.owner, path))).docs.map((found) => ({ id: found.id, data: found.data() }));
  }

  async end() {
    await Promise.all(this.#apps.map(deleteApp));
  }
}

export function token() {
  return randomBytes(5).toString('hex');
}
