// Whether the parts of the local stack answer.

const EVERY_MS = 2000;

/** Calls with words each time they change; they are empty while all of it answers. */
export function watchStack(onWords) {
  let last = '';
  async function look() {
    const words = navigator.onLine ? await wordsNow() : ''; // offline is said elsewhere
    if (words !== last) onWords((last = words));
    setTimeout(look, EVERY_MS);
  }
  look();
}

async function wordsNow() {
  try {
    const { down } = await (await fetch('/stack.json')).json();
    return down.length ? `The local stack is not complete: ${down.join(', ')} does not answer. What you send waits.` : '';
  } catch {
    return 'The local stack has stopped. Start it with: outbox dev. What you send waits in this browser.';
  }
}
