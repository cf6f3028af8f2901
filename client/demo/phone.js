// The other end, which is simulated: to reply, and to be a number that does not exist.

const $ = (id) => document.getElementById(id);

export function openPhone({ open, failed }) {
  $('reply').addEventListener('submit', (event) => {
    event.preventDefault();
    const text = $('reply-text').value.trim();
    if (!text) return;
    $('reply-text').value = '';
    call('POST', '/phone/replies', { accountId: open.accountId, from: open.to, text }).catch(failed);
  });
  $('unknown-number').addEventListener('change', () => {
    call('PUT', '/phone/numbers', { to: open.to, exists: !$('unknown-number').checked }).catch(failed);
  });
}

/** Whether this contact's number exists, as it was set before. */
export async function lookAtPhone(to) {
  const { exists } = await (await call('GET', `/phone/numbers?${new URLSearchParams({ to })}`)).json();
  $('unknown-number').checked = !exists;
}

async function call(method, path, body) {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) }).catch((error) => error);
  if (!answer.ok) throw Object.assign(new Error(`${path} was not answered`, { cause: answer }), { code: 'phone' });
  return answer;
}
