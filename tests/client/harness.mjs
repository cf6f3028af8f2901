// Cases that run one after another in one process, each reported as a line of JSON when it ends.
// The side of pytest is in tests/client/node.py, which finds the cases' names in the source: `test('name', ...)`.

const CASE_SECONDS = 300; // ends a case that hangs; above one wait of tests/patience.py, whose message says more
const LOOK_SECONDS = 60; // the same, for one thing that a case waits for
const LOOK_MS = 20;

const cases = [];

export function test(name, body) {
  cases.push({ name, body });
}

/** Runs the cases that the environment names, or all. */
export async function run(world) {
  const wanted = new Set(JSON.parse(process.env.CASES ?? 'null') ?? cases.map(({ name }) => name));
  for (const { name, body } of cases) {
    if (!wanted.has(name)) continue;
    const started = performance.now();
    let error = null;
    for (let tries = world.isOfficial ? 2 : 1; tries > 0; tries -= 1) { // Google's now and then forgets a listener
      error = await errorOf(() => body(world));
      if (error === null) break;
    }
    const ms = Math.round(performance.now() - started);
    process.stdout.write(`${JSON.stringify({ name, error, ms, ...(await world.after?.(error)) })}\n`);
  }
}

async function errorOf(body) {
  try {
    await within(CASE_SECONDS, body);
    return null;
  } catch (caught) {
    return (caught instanceof Error ? caught.stack : null) ?? String(caught);
  }
}

async function within(seconds, body) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not end within ${seconds} s`)), seconds * 1000);
  });
  try {
    await Promise.race([body(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Looks until it is good, and gives what it saw; in vain, it says what it saw last. */
export async function until(what, look, good = Boolean, seconds = LOOK_SECONDS) {
  const ends = performance.now() + seconds * 1000;
  for (;;) {
    const seen = await look();
    if (good(seen)) return seen;
    if (performance.now() > ends) throw new Error(`${what} did not come; seen last: ${JSON.stringify(seen)}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

/** What a listener was told, and a wait for the next that is good. */
export class Seen {
  values = [];
  #waiting = [];

  add = (value) => {
    this.values.push(value);
    this.#waiting = this.#waiting.filter((look) => !look(value));
  };

  /** The first value, past or to come, that is good. */
  until(what, good) {
    const past = this.values.find(good);
    if (past !== undefined) return Promise.resolve(past);
    return new Promise((resolve, reject) => {
      const fail = () => reject(new Error(`${what} did not come; seen: ${JSON.stringify(this.values)}`));
      const timer = setTimeout(fail, LOOK_SECONDS * 1000);
      this.#waiting.push((value) => {
        if (!good(value)) return false;
        clearTimeout(timer);
        resolve(value);
        return true;
      });
    });
  }
}
