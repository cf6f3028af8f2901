// Live pages, and times in the person's own zone. Every page works without this file.

const ZONE_COOKIE = 'console_zone';
const SILENT_MS = 45_000; // the server says something every 15 s

/** The zone of this browser, for the next pages; this one is loaded again if it was shown in another. */
function useZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const shown = document.querySelector('#zone')?.textContent;
  if (!zone || document.cookie.includes(`${ZONE_COOKIE}=`)) return;
  document.cookie = `${ZONE_COOKIE}=${encodeURIComponent(zone)}; path=/; max-age=31536000; samesite=lax`;
  if (shown && shown !== zone) location.reload();
}

/** Replaces the live part, and leaves the place and the focus where they were. */
function show(html) {
  const live = document.querySelector('#live');
  const active = document.activeElement;
  if (live.contains(active) && active.matches('input:not([type=hidden]), select, textarea')) return;
  const opened = [...live.querySelectorAll('details[open]')].map(({ id }) => id);
  const focused = live.contains(active) ? identityOf(active) : null;
  live.innerHTML = html;
  for (const id of opened) if (id) document.getElementById(id)?.setAttribute('open', '');
  if (!focused) return;
  const same = [...live.querySelectorAll('a[href], button, summary, [tabindex]')].find((one) => identityOf(one) === focused);
  same?.focus({ preventScroll: true });
}

/**
 * What makes two elements the same thing before and after an update. Two buttons of one message differ only in the values
 * that they send: a focus that moved from "It did not" to "It arrived" would settle the message wrongly at the next Enter.
 */
function identityOf(element) {
  const href = element.getAttribute('href');
  if (element.id || href) return `${element.id} ${href}`;
  const form = element.closest('form');
  const sent = form ? [...new FormData(form)].filter(([name]) => name !== 'csrf') : [];
  const action = form?.getAttribute('action');
  return JSON.stringify([element.closest('[id]')?.id, element.tagName, element.className, element.name, element.value, action, sent]);
}

function follow(path) {
  const told = document.querySelector('#connection');
  const say = (words, state) => {
    if (!told || told.textContent === words) return;
    told.textContent = words;
    told.dataset.state = state;
  };
  let source;
  let timer;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(open, SILENT_MS);
  };
  const open = () => {
    source?.close();
    source = new EventSource(path);
    source.addEventListener('open', () => { say('Updates by itself.', 'live'); alive(); });
    source.addEventListener('changed', ({ data }) => { alive(); show(JSON.parse(data)); });
    source.addEventListener('error', () => {
      say('Connection lost; trying again …', 'lost');
      if (source.readyState !== EventSource.CLOSED) return;
      clearTimeout(timer);
      timer = setTimeout(ask, 2_000); // the browser gave up: signed out, or the server answered with an error
    });
    alive();
  };
  const ask = async () => {
    const answer = await fetch(path, { method: 'GET', headers: { accept: 'text/event-stream' } }).catch(() => null);
    answer?.body?.cancel();
    if (answer?.status === 401) return say('You are signed out. Load the page again to sign in.', 'out');
    open();
  };
  open();
  addEventListener('pagehide', () => source.close());
  addEventListener('pageshow', ({ persisted }) => { if (persisted) open(); });
}

useZone();
const { live } = document.body.dataset;
if (live) follow(live);

/** One key for each decision on the row in focus. */
addEventListener('keydown', (event) => {
  const row = document.activeElement?.closest?.('tr[data-keys]');
  if (!row || row !== document.activeElement || event.ctrlKey || event.metaKey || event.altKey) return;
  const next = { j: row.nextElementSibling, k: row.previousElementSibling }[event.key];
  if (next) next.focus();
  else if (['s', 'f'].includes(event.key)) row.querySelector(`button.key-${event.key}`)?.click();
});
