// Rules tested the way Firebase documents it, with @firebase/rules-unit-testing, unchanged.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

import { assertFails, assertSucceeds, initializeTestEnvironment } from '@firebase/rules-unit-testing';
import {
  collection,
  collectionGroup,
  deleteDoc,
  doc,
  getCountFromServer,
  getDoc,
  getDocs,
  limit,
  onSnapshot,
  query,
  runTransaction,
  serverTimestamp,
  setDoc,
  setLogLevel,
  updateDoc,
  where,
  writeBatch,
} from 'firebase/firestore';

import { run, test, until } from '../client/harness.mjs';

setLogLevel('silent');

const RULES = `rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    function isSignedIn() { return request.auth != null; }
    match /rooms/{roomId} {
      allow read: if isSignedIn() && request.auth.uid in resource.data.members;
      allow create: if isSignedIn() && request.resource.data.owner == request.auth.uid;
      allow update: if resource.data.owner == request.auth.uid
        && request.resource.data.diff(resource.data).affectedKeys().hasOnly(['title', 'members']);
      match /posts/{postId} {
        allow read: if request.auth.uid in get(/databases/$(database)/documents/rooms/$(roomId)).data.members;
        allow create: if request.resource.data.at == request.time
          && getAfter(/databases/$(database)/documents/rooms/$(roomId)).data.posts == 1;
      }
    }
    match /rooms/{roomId} { allow update: if request.resource.data.posts == 1 && isSignedIn(); }
    match /{path=**}/notes/{noteId} { allow list: if resource.data.author == request.auth.uid; }
    match /counters/{id} { allow read, write: if request.auth.token.role == 'clerk'; }
  }
}`;

class World {
  static async start(given) {
    const [host, port] = given.host.split(':');
    const projectId = `unit-${Math.random().toString(36).slice(2, 10)}`;
    const options = { projectId, firestore: { rules: RULES, host, port: Number(port) } };
    const environment = await initializeTestEnvironment(options);
    return Object.assign(new World(), { environment, projectId, given, isOfficial: given.isOfficial });
  }

  async room(fields = {}) {
    await this.environment.withSecurityRulesDisabled(async (context) => {
      await setDoc(doc(context.firestore(), 'rooms/r'), { owner: 'alice', members: ['alice', 'bob'], ...fields });
    });
  }

  as(uid, claims) {
    return this.environment.authenticatedContext(uid, claims).firestore();
  }

  signedOut() {
    return this.environment.unauthenticatedContext().firestore();
  }

  async after() {
    await this.environment.clearFirestore();
    return {};
  }

  async end() {
    await this.environment.cleanup();
  }
}

test('a member reads a room, a stranger and a signed-out client do not', async (world) => {
  await world.room();
  await assertSucceeds(getDoc(doc(world.as('alice'), 'rooms/r')));
  await assertFails(getDoc(doc(world.as('eve'), 'rooms/r')));
  await assertFails(getDoc(doc(world.signedOut(), 'rooms/r')));
});

test('a query is allowed if its filters prove the rule, whatever is stored', async (world) => {
  await world.room();
  const rooms = collection(world.as('alice'), 'rooms');
  await assertSucceeds(getDocs(query(rooms, where('members', 'array-contains', 'alice'))));
  await assertFails(getDocs(query(rooms, where('members', 'array-contains', 'bob'))));
  await assertFails(getDocs(rooms));
  await assertSucceeds(getCountFromServer(query(rooms, where('members', 'array-contains', 'alice'))));
  await assertFails(getCountFromServer(query(rooms, limit(1))));
});

test('a collection group needs a rule for groups', async (world) => {
  const notes = collectionGroup(world.as('alice'), 'notes');
  await assertSucceeds(getDocs(query(notes, where('author', '==', 'alice'))));
  await assertFails(getDocs(query(notes, where('author', '==', 'bob'))));
  await assertFails(getDocs(collectionGroup(world.as('alice'), 'posts')));
});

test('an owner creates a room and changes what may change', async (world) => {
  const db = world.as('alice');
  await assertSucceeds(setDoc(doc(db, 'rooms/r'), { owner: 'alice', members: ['alice'], title: 'One' }));
  await assertSucceeds(updateDoc(doc(db, 'rooms/r'), { title: 'Two' }));
  await assertFails(updateDoc(doc(db, 'rooms/r'), { owner: 'bob' }));
  await assertFails(deleteDoc(doc(db, 'rooms/r')));
  await assertFails(setDoc(doc(db, 'rooms/s'), { owner: 'bob' }));
});

test('a batch is judged by what it leaves behind', async (world) => {
  await world.room();
  const db = world.as('bob');
  const post = { text: 'Hi', at: serverTimestamp() };
  await assertFails(setDoc(doc(db, 'rooms/r/posts/p'), post));
  const batch = writeBatch(db);
  batch.set(doc(db, 'rooms/r/posts/p'), post);
  batch.update(doc(db, 'rooms/r'), { posts: 1 });
  await assertSucceeds(batch.commit());
});

test('a transaction is judged when it reads and when it commits', async (world) => {
  const clerk = world.as('carol', { role: 'clerk' });
  const count = (db) => runTransaction(db, async (transaction) => {
    const counter = doc(db, 'counters/c');
    const found = await transaction.get(counter);
    transaction.set(counter, { value: (found.data()?.value ?? 0) + 1 });
  });
  await assertSucceeds(count(clerk));
  await assertFails(count(world.as('carol')));
  assert.equal((await getDoc(doc(clerk, 'counters/c'))).data().value, 1);
});

test('a listener is refused, and one that loses access is ended', async (world) => {
  await world.room();
  const listen = (db) => {
    const seen = { values: [], error: null };
    onSnapshot(doc(db, 'rooms/r'), (found) => seen.values.push(found.data()?.title), (error) => (seen.error = error));
    return seen;
  };
  const refused = listen(world.as('eve'));
  const bob = listen(world.as('bob'));
  await until('both have heard', () => refused.error !== null && bob.values.length > 0);
  assert.equal(refused.error.code, 'permission-denied');
  await updateDoc(doc(world.as('alice'), 'rooms/r'), { members: ['alice'], title: 'Without Bob' });
  await until('bob is shut out', () => bob.error !== null);
  assert.equal(bob.error.code, 'permission-denied');
  assert.ok(!bob.values.includes('Without Bob'));
});

test('a query that is listened to ends when the document that allows it changes', async (world) => {
  await world.room();
  const seen = { answers: 0, error: null };
  onSnapshot(collection(world.as('bob'), 'rooms/r/posts'), () => (seen.answers += 1), (error) => (seen.error = error));
  await until('the first answer', () => seen.answers > 0);
  await updateDoc(doc(world.as('alice'), 'rooms/r'), { members: ['alice'] });
  await world.environment.withSecurityRulesDisabled(async (context) => {
    await setDoc(doc(context.firestore(), 'rooms/r/posts/secret'), { text: 'not for Bob' });
  });
  await until('the end', () => seen.error !== null);
  assert.equal(seen.error.code, 'permission-denied');
});

test('the coverage says how often each expression had which value', async (world) => {
  await world.room();
  await assertSucceeds(getDoc(doc(world.as('alice'), 'rooms/r')));
  await assertFails(getDoc(doc(world.signedOut(), 'rooms/r')));
  const address = `http://${world.given.host}/emulator/v1/projects/${world.projectId}:ruleCoverage`;
  const { report, rules } = await (await fetch(address, { headers: { 'content-type': 'application/json' } })).json();
  assert.equal(rules.files[0].content, RULES);
  const nodes = (list) => list.flatMap((node) => [node, ...nodes(node.children ?? [])]);
  const found = nodes(report).filter(({ sourcePosition }) => sourcePosition.line === 4);
  const values = found.flatMap((node) => (node.values ?? []).map(({ value }) => value.boolValue));
  assert.ok(values.includes(true) && values.includes(false));
});

test('rules that do not compile are refused with their line', async (world) => {
  const [host, port] = world.given.host.split(':');
  const firestore = { rules: RULES.replace('isSignedIn();', 'isSignedIn(;'), host, port: Number(port) };
  await assert.rejects(initializeTestEnvironment({ projectId: `${world.projectId}-bad`, firestore }), /L16:93/);
});

test('the rules of the product can be loaded the same way', async (world) => {
  const [host, port] = world.given.host.split(':');
  const firestore = { rules: readFileSync('firestore.rules', 'utf8'), host, port: Number(port) };
  const environment = await initializeTestEnvironment({ projectId: `${world.projectId}-product`, firestore });
  await assertFails(getDocs(collection(environment.authenticatedContext('alice').firestore(), 'outbox')));
  await environment.cleanup();
});

const world = await World.start(JSON.parse(process.env.WORLD));
await run(world);
await world.end();
process.exit();
