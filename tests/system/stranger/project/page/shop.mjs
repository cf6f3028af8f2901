// In the browser: transactions of the web SDK, over WebChannel, that read what they do not write.

import { initializeApp } from 'firebase/app';
import { connectFirestoreEmulator, doc, getDoc, getFirestore, runTransaction, setDoc } from 'firebase/firestore';

export async function buy(host, port) {
  const db = getFirestore(initializeApp({ projectId: 'bookshop' }));
  connectFirestoreEmulator(db, host, port);
  const [prices, cart] = [doc(db, 'shop/prices'), doc(db, 'carts/ann')];
  await setDoc(prices, { emma: 7 });
  const price = await runTransaction(db, async (transaction) => {
    const found = (await transaction.get(prices)).data().emma; // read, and not written
    transaction.set(cart, { total: found });
    return found;
  });
  const seen = await runTransaction(db, async (transaction) => (await transaction.get(cart)).data()); // reads alone
  const missing = await runTransaction(db, async (transaction) => {
    const other = await transaction.get(doc(db, 'carts/bob')); // is not there, and must not come to be
    transaction.update(cart, { shared: other.exists() });
    return other.exists();
  });
  return { price, seen, missing, stored: (await getDoc(cart)).data() };
}
