// Sign-in with Firebase Auth: email and password, and Google where the configuration says so.

import {
  GoogleAuthProvider,
  browserLocalPersistence,
  browserPopupRedirectResolver,
  connectAuthEmulator,
  indexedDBLocalPersistence,
  initializeAuth,
  onAuthStateChanged,
  signInWithEmailAndPassword,
  signInWithPopup,
  signOut,
} from 'firebase/auth';

import { signInWords } from './words.js';

const $ = (id) => document.getElementById(id);

/** Shows the form until someone is signed in. When that person leaves, in whichever tab, the page starts again. */
export async function signIn(app, config) {
  const auth = initializeAuth(app, { persistence: [indexedDBLocalPersistence, browserLocalPersistence] });
  if (config.authEmulator) connectAuthEmulator(auth, config.authEmulator, { disableWarnings: true });
  listen(auth, config);
  const user = await new Promise((resolve) => {
    onAuthStateChanged(auth, (now) => {
      if (now) resolve(now);
      else showForm();
    });
  });
  $('sign-in-page').hidden = true;
  onAuthStateChanged(auth, (now) => {
    if (now?.uid !== user.uid) location.reload();
  });
  return { user, leave: () => signOut(auth) };
}

function showForm() {
  $('sign-in-page').hidden = false;
  $('email').focus();
}

function listen(auth, config) {
  const attempt = async (signing) => {
    $('sign-in-problem').textContent = '';
    try {
      await signing();
    } catch (error) {
      $('sign-in-problem').textContent = signInWords(error);
    }
  };
  $('sign-in').addEventListener('submit', (event) => {
    event.preventDefault();
    attempt(() => signInWithEmailAndPassword(auth, $('email').value.trim(), $('password').value));
  });
  $('google').hidden = !config.hasGoogle;
  $('google').addEventListener('click', () => {
    attempt(() => signInWithPopup(auth, new GoogleAuthProvider(), browserPopupRedirectResolver));
  });
}
