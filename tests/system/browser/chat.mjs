// The chat page in Chromium, on a whole stack of real processes.

import assert from 'node:assert/strict';

import { run, test, until } from '../../client/harness.mjs';
import { World } from './world.mjs';

const TO = '+491511234567';
const WAY = ['pending', 'queued', 'sent', 'delivered', 'read'];

const requestIds = async (world, accountId) => (await world.calls(accountId)).map(({ requestId }) => requestId);

test('a message goes from the page to the contact, and its ticks move forward to read', async (world) => {
  const accountId = await world.account();
  const chat = await world.chat(accountId, TO);
  await chat.say('Hello');
  const id = await chat.becomes('Hello', 'read');
  const states = await chat.states(id);
  assert.deepEqual(states, WAY.filter((state) => states.includes(state)), 'forward, each once');
  assert.equal(states[0], 'pending', 'it was shown before the server had it');
  assert.deepEqual(await requestIds(world, accountId), [id]);
  const stored = await world.documents.read(`threads/${accountId}__${TO}/messages/${id}`);
  assert.equal(stored.status, 'read');
});

test('a double click sends once', async (world) => {
  const accountId = await world.account();
  const chat = await world.chat(accountId, TO);
  await chat.text.fill('Only once');
  await chat.send.dblclick();
  const id = await chat.becomes('Only once', 'read');
  await chat.say('And this'); // behind it in the same thread: once this is read, nothing else was on its way
  const next = await chat.becomes('And this', 'read');
  assert.deepEqual(await requestIds(world, accountId), [id, next]);
  await chat.shows('Only once [read]', 'And this [read]');
});

test('a requestId is sent once: a second call finds it there, and another text with it is refused', async (world) => {
  const accountId = await world.account();
  const chat = await world.chat(accountId, TO);
  const { first, second, other, requestId } = await chat.page.evaluate(callThreeTimes, [accountId, TO]);
  assert.deepEqual([first.isNew, second.isNew], [true, false]);
  assert.equal(other, 'request-id-taken');
  await chat.becomes('Only once', 'read');
  await chat.say('And this'); // behind it in the same thread: once this is read, nothing else was on its way
  const next = await chat.becomes('And this', 'read');
  assert.deepEqual(await requestIds(world, accountId), [requestId, next]);
});

/** In the page, with what the page itself imports. */
async function callThreeTimes([accountId, to]) {
  const [{ getApp }, { getFirestore }, { newRequestId, sendMessage }] = await Promise.all([
    import('firebase/app'),
    import('firebase/firestore'),
    import('/outbox.js'),
  ]);
  const { uid } = await (await fetch('/config.json')).json();
  const requestId = newRequestId();
  const send = (text) => sendMessage(getFirestore(getApp()), { requestId, accountId, to, text, uid });
  const first = await send('Only once');
  const second = await send('Only once');
  const other = await send('Something else').then(() => 'sent', ({ code }) => code);
  return { first, second, other, requestId };
}

test('receipts move the ticks one by one, and never back', async (world) => {
  const accountId = await world.account();
  await world.faults(accountId, { receiptLossRate: 1 });
  const chat = await world.chat(accountId, TO);
  await chat.say('Did you get this?');
  const id = await chat.becomes('Did you get this?', 'sent');
  const { providerMessageId } = await world.documents.read(`outbox/${id}`);
  await world.receipt(accountId, providerMessageId, 'delivered');
  await chat.becomes('Did you get this?', 'delivered');
  await world.receipt(accountId, providerMessageId, 'read');
  await chat.becomes('Did you get this?', 'read');
  await world.receipt(accountId, providerMessageId, 'delivered');
  await chat.say('Well?'); // its tick comes after anything the late receipt could have done
  await chat.becomes('Well?', 'sent');
  assert.deepEqual((await chat.states(id)).slice(-3), ['sent', 'delivered', 'read']);
});

test('what is sent offline waits, and is sent once when the browser is online again', async (world) => {
  const accountId = await world.account();
  const context = await world.context();
  const chat = await world.chat(accountId, TO, context);
  await chat.say('Before');
  const before = await chat.becomes('Before', 'read');
  await context.setOffline(true);
  await chat.page.getByText('Offline: what you send waits here').waitFor();
  await chat.text.fill('From the tunnel');
  await chat.send.dblclick();
  const id = await chat.becomes('From the tunnel', 'pending');
  assert.equal(await world.documents.read(`outbox/${id}`), undefined);
  await context.setOffline(false);
  await chat.page.getByText('Online').waitFor();
  await chat.becomes('From the tunnel', 'read');
  assert.deepEqual(await requestIds(world, accountId), [before, id]);
});

test('what was sent offline outlives its tab, and is sent once', async (world) => {
  const accountId = await world.account();
  const context = await world.context();
  const first = await world.chat(accountId, TO, context);
  await first.page.getByText('Online').waitFor();
  await context.setOffline(true);
  await first.say('I close the lid');
  const id = await first.becomes('I close the lid', 'pending');
  await first.page.close();
  await context.setOffline(false);
  const second = await world.chat(accountId, TO, context);
  await second.becomes('I close the lid', 'read');
  assert.deepEqual(await requestIds(world, accountId), [id]);
});

// What was sent and not answered is sent again, and the rules let a document be made only once.
test('a connection that breaks while a message is sent loses nothing and repeats nothing', async (world) => {
  const accountId = await world.account();
  const context = await world.context();
  const chat = await world.chat(accountId, TO, context);
  const ids = [];
  for (const moment of [0, 5, 15, 40, 100]) {
    await chat.say(`After ${moment} ms`);
    await chat.page.waitForTimeout(moment); // the moment is the case: between the click and the answer
    await context.setOffline(true);
    await chat.page.getByText('Offline: what you send waits here').waitFor();
    await context.setOffline(false);
    ids.push(await chat.becomes(`After ${moment} ms`, 'read'));
  }
  assert.deepEqual(await requestIds(world, accountId), ids);
});

test('two tabs show the same, and each what the other does', async (world) => {
  const accountId = await world.account();
  const context = await world.context();
  const [left, right] = [await world.chat(accountId, TO, context), await world.chat(accountId, TO, context)];
  await left.say('From the left');
  await right.becomes('From the left', 'read');
  await right.say('From the right');
  await left.becomes('From the right', 'read');
  await world.inbound(accountId, TO, 'From outside');
  for (const tab of [left, right]) {
    await tab.shows('From the left [read]', 'From the right [read]', 'From outside [inbound]');
  }
  assert.equal((await world.calls(accountId)).length, 2);
});

test('two browsers show the same', async (world) => {
  const accountId = await world.account();
  const [office, home] = [await world.chat(accountId, TO), await world.chat(accountId, TO)];
  await office.say('From the office');
  await home.becomes('From the office', 'read');
  await home.say('From home');
  await office.becomes('From home', 'read');
});

test('a message that is sent later waits, and is cancelled', async (world) => {
  const accountId = await world.account();
  const chat = await world.chat(accountId, TO);
  await chat.sayAt('Happy new year', new Date(Date.now() + 3_600_000));
  const id = await chat.becomes('Happy new year', 'scheduled');
  await chat.message('Happy new year').getByText('Goes out').waitFor();
  await chat.message('Happy new year').getByRole('button', { name: 'Cancel' }).click();
  await chat.message('Happy new year').locator('.reason').getByText('Cancelled').waitFor();
  assert.ok((await chat.states(id)).includes('cancelling'), 'it is struck through before the worker knows');
  assert.equal(await chat.message('Happy new year').getByRole('button', { name: 'Cancel' }).count(), 0);
  await chat.becomes('Happy new year', 'cancelled');
  assert.equal((await world.documents.read(`outbox/${id}`)).status, 'cancelled');
  assert.deepEqual(await world.calls(accountId), []);
});

test('a message that is sent later goes out at its time', async (world) => {
  const accountId = await world.account();
  const chat = await world.chat(accountId, TO);
  const at = new Date(Math.ceil(Date.now() / 1000) * 1000 + 10_000);
  await chat.sayAt('Now it is time', at);
  const id = await chat.becomes('Now it is time', 'read');
  assert.ok((await chat.states(id)).includes('scheduled'));
  const [call] = await world.calls(accountId);
  assert.ok(new Date(call.at) >= at, `${call.at} is before ${at.toISOString()}`);
});

test('a time that has passed is refused in words, and what was written comes back', async (world) => {
  const accountId = await world.account();
  const chat = await world.chat(accountId, TO);
  await chat.sayAt('Yesterday', new Date(Date.now() - 86_400_000));
  await chat.page.getByRole('alert').getByText('This time has passed. Choose a later one.').waitFor();
  assert.equal(await chat.text.inputValue(), 'Yesterday');
  await chat.send.click();
  await chat.becomes('Yesterday', 'read');
  assert.equal((await world.calls(accountId)).length, 1);
});

test('a reply appears in the open conversation and counts as read', async (world) => {
  const accountId = await world.account();
  const chat = await world.chat(accountId, TO);
  await chat.say('Are you there?');
  await chat.becomes('Are you there?', 'read');
  await chat.page.getByLabel('Reply').fill('Here I am');
  await chat.page.getByRole('button', { name: 'Reply' }).click();
  await chat.shows('Are you there? [read]', 'Here I am [inbound]');
  const thread = `threads/${accountId}__${TO}`;
  await until('nothing unread', () => world.documents.read(thread), ({ unreadCount }) => unreadCount === 0);
});

test('a reply in another conversation is counted until it is opened', async (world) => {
  const accountId = await world.account();
  const chat = await world.chat(accountId, TO);
  await world.inbound(accountId, '+4917000', 'Anybody?');
  await world.inbound(accountId, '+4917000', 'Hello?');
  const link = chat.page.getByRole('link', { name: '+4917000' });
  await link.getByText('2', { exact: true }).waitFor();
  await link.click();
  await chat.shows('Anybody? [inbound]', 'Hello? [inbound]');
  await until('no count', () => link.locator('.unread').count(), (count) => count === 0);
});

test('a message to a number that does not exist fails, and says why', async (world) => {
  const accountId = await world.account();
  const chat = await world.chat(accountId, '+4900000');
  await chat.page.getByLabel('The number does not exist').check();
  await until('the simulator to know', async () => {
    const { invalidRecipients } = await (await fetch(`${world.given.provider}/_sim/faults`)).json();
    return invalidRecipients.includes('+4900000');
  });
  await chat.say('Hello?');
  await chat.becomes('Hello?', 'failed');
  await chat.message('Hello?').getByText('This number does not exist.').waitFor();
});

test('an account and a contact are picked, and the address remembers them', async (world) => {
  const chat = await world.chat('shop');
  await chat.page.getByLabel('Account').selectOption('Dental clinic');
  await chat.page.getByRole('link', { name: 'Grace' }).click();
  await chat.page.getByRole('heading', { name: 'Grace' }).waitFor();
  assert.equal(new URL(chat.page.url()).search, '?account=clinic&to=%2B4915550000002');
  await chat.page.reload();
  await chat.page.getByRole('heading', { name: 'Grace' }).waitFor();
  assert.equal(await chat.page.getByLabel('Account').inputValue(), 'clinic');
  await chat.page.getByLabel('Another contact').fill('+49 170 55');
  await chat.page.getByRole('button', { name: 'Open' }).click();
  await chat.page.getByRole('heading', { name: '+4917055' }).waitFor();
  await chat.page.goBack();
  await chat.page.getByRole('heading', { name: 'Grace' }).waitFor();
});

test('the keyboard is enough, and everything has a name', async (world) => {
  const accountId = await world.account();
  const chat = await world.chat(accountId, TO);
  await chat.text.focus();
  await chat.page.keyboard.type('First line');
  await chat.page.keyboard.press('Shift+Enter');
  await chat.page.keyboard.type('second line');
  await chat.page.keyboard.press('Enter');
  await chat.becomes('second line', 'read');
  await chat.shows('First line\nsecond line [read]');
  const nameless = await chat.page.$$eval('button, input, select, textarea, a', (controls) =>
    controls.filter((one) => !one.textContent.trim() && !one.labels?.length).map((one) => one.outerHTML),
  );
  assert.deepEqual(nameless, []);
  assert.equal(await chat.message('second line').getByText('read', { exact: true }).count(), 1, 'a tick in words');
});

test('an account that does not exist, or has other members, is said to be unknown, and nothing can be sent', async (world) => {
  const { id } = await world.documents.account();
  for (const accountId of [id, 'no-such-account']) {
    const chat = await world.chat(accountId, TO);
    await chat.tells(`There is no account ${accountId}, or you are not a member of it.`);
    await chat.send.waitFor({ state: 'hidden' });
  }
});

test('a paused account is said to be paused until it is resumed', async (world) => {
  const accountId = await world.account({ status: 'paused' });
  const chat = await world.chat(accountId, TO);
  await chat.tells('This account is paused.');
  await chat.say('Later, then');
  await chat.becomes('Later, then', 'queued');
  await world.documents.change(`accounts/${accountId}`, { status: 'parked' });
  await chat.tells('The provider refuses this account.');
  await world.documents.change(`accounts/${accountId}`, { status: 'paused', pausedUntil: new Date(Date.now() + 3_600_000) });
  await chat.tells('This account is paused until');
  await world.documents.change(`accounts/${accountId}`, { status: 'active', pausedUntil: new Date(0) });
  await until('no notice', () => chat.page.locator('#notice').textContent(), (words) => words === '');
});

test('what fails is said in words for people, and never in those of the program', async (world) => {
  const accountId = await world.account();
  const chat = await world.chat(accountId, TO);
  for (const errorCode of ['rejected', 'recipient_invalid', 'invalid_message', 'window_closed']) {
    await world.faults(accountId, { errorRate: 1, errorCode });
    await chat.say(`As ${errorCode}`);
    await chat.becomes(`As ${errorCode}`, 'failed');
    const reason = await chat.message(`As ${errorCode}`).locator('.reason').textContent();
    assert.match(reason, /^[A-Z][a-z ]+\.$/);
  }
});

test('on a wide screen the page is as high as the window, with and without a notice', async (world) => {
  const accountId = await world.account();
  const chat = await world.chat(accountId, TO);
  await chat.page.getByText('Online').waitFor();
  const bottom = () => chat.page.locator('#chat').evaluate((main) => main.getBoundingClientRect().bottom - innerHeight);
  assert.equal(await bottom(), 0);
  await world.documents.change(`accounts/${accountId}`, { status: 'paused' });
  await chat.tells('This account is paused.');
  assert.equal(await bottom(), 0);
});

const SMALL = { upright: { width: 320, height: 568 }, lying: { width: 667, height: 375 } };

test('on a small screen everything fits, and the message can be written', async (world) => {
  const accountId = await world.account();
  for (const viewport of Object.values(SMALL)) {
    const chat = await world.chat(accountId, TO, await world.context({ viewport, hasTouch: true }));
    await chat.say('A longer message, of several words, that needs more than one line on a phone: Donaudampfschifffahrt');
    await chat.becomes('longer message', 'read');
    for (const isPhoneOpen of [false, true]) {
      await chat.page.locator('#phone-details').evaluate((details, open) => (details.open = open), isPhoneOpen);
      const { innerWidth, scrollWidth, scrollHeight, innerHeight } = await chat.page.evaluate(sizes);
      assert.deepEqual([scrollWidth, scrollHeight], [innerWidth, innerHeight], 'the page itself does not scroll');
      for (const control of [chat.text, chat.send]) await isInView(control, viewport);
    }
    await chat.page.locator('#phone-details').evaluate((details) => (details.open = false));
    const { height } = await chat.page.getByRole('log').boundingBox();
    assert.ok(height >= 90, `${height} pixels are left for the messages`);
    await chat.page.getByRole('link', { name: 'Conversations' }).click();
    await chat.page.getByRole('link', { name: 'A longer message' }).waitFor();
    await chat.text.waitFor({ state: 'hidden' });
    const list = await chat.page.evaluate(sizes);
    assert.equal(list.scrollWidth, list.innerWidth);
  }
});

/** In the page. */
function sizes() {
  const { scrollWidth, scrollHeight } = document.documentElement;
  return { innerWidth, innerHeight, scrollWidth, scrollHeight };
}

async function isInView(control, { width, height }) {
  const box = await control.boundingBox();
  const fits = box && box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height;
  assert.ok(fits, `it is at ${JSON.stringify(box)}`);
}

test('a link to a conversation opens it, also after a reload and on a small screen', async (world) => {
  const accountId = await world.account();
  const chat = await world.chat(accountId, TO, await world.context({ viewport: SMALL.upright }));
  await chat.say('Remember me');
  await chat.becomes('Remember me', 'read');
  const link = chat.page.url();
  await chat.page.reload();
  await chat.becomes('Remember me', 'read');
  assert.equal(chat.page.url(), link);
  await chat.page.getByRole('link', { name: 'Conversations' }).click();
  await chat.page.getByRole('link', { name: TO }).click();
  await chat.becomes('Remember me', 'read');
  assert.equal(chat.page.url(), link);
  await chat.page.goBack();
  await chat.page.getByRole('link', { name: TO }).waitFor();
});

test('text stands out from its background as WCAG AA asks, in light and in dark', async (world) => {
  const accountId = await world.account({ status: 'paused' });
  for (const colorScheme of ['light', 'dark']) {
    const chat = await world.chat(accountId, TO, await world.context({ colorScheme }));
    await chat.tells('This account is paused.');
    await chat.say(`In ${colorScheme}`);
    await chat.becomes(`In ${colorScheme}`, 'queued');
    await world.inbound(accountId, TO, `And back, ${colorScheme}`);
    await chat.message(`And back, ${colorScheme}`).waitFor();
    await chat.sayAt(`Scheduled, ${colorScheme}`, new Date(Date.now() - 86_400_000));
    await chat.page.getByRole('alert').getByText('This time has passed.').waitFor();
    for (const state of ['read', 'failed', 'cancelled', 'pending', 'scheduled']) {
      await chat.page.locator('#messages li').first().evaluate((entry, shown) => (entry.dataset.state = shown), state);
      assert.deepEqual(await chat.page.evaluate(tooFaint), [], `${colorScheme}, ${state}`);
    }
  }
});

/** In the page: every text below 4.5:1, and every edge of a control below 3:1. */
function tooFaint() {
  const channels = (color) => color.match(/[\d.]+/g).map(Number);
  const light = (color) => {
    const [red, green, blue] = channels(color).map((one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const behind = (element) => {
    const { backgroundColor } = getComputedStyle(element);
    return channels(backgroundColor)[3] === 0 ? behind(element.parentElement) : backgroundColor;
  };
  const found = [];
  for (const element of document.body.querySelectorAll('*')) {
    if (!element.checkVisibility({ opacityProperty: true }) || element.closest('.unseen, option')) continue;
    const style = getComputedStyle(element);
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const text = ratio(style.color, behind(element));
    if ((hasText || element.matches('input, textarea, select, .mark')) && text < 4.5) found.push(`${element.outerHTML}: ${text}`);
    if (!element.matches('input:not([type=checkbox]), textarea, select, button, .attach')) continue;
    const edge = ratio(style.borderTopColor, behind(element.parentElement));
    if (edge < 3) found.push(`the edge of ${element.outerHTML}: ${edge}`);
  }
  return found;
}

test('the focus goes through the page in the order in which it is read', async (world) => {
  const accountId = await world.account();
  await world.inbound(accountId, TO, 'Hello');
  const wide = ['account', 'link', 'link', 'link', 'link', 'new-to', 'Open', 'messages', 'text', 'file', 'send', 'Send later', 'Their phone', 'reply-text', 'Reply', 'unknown-number'];
  const narrow = ['account', 'back', 'messages', 'text', 'file', 'send', 'Send later', 'Their phone'];
  for (const [options, wanted] of [[{}, wide], [{ viewport: SMALL.upright }, narrow]]) {
    const chat = await world.chat(accountId, TO, await world.context(options));
    await chat.message('Hello').waitFor();
    const order = [];
    for (const _ of wanted) {
      await chat.page.keyboard.press('Tab');
      order.push(await chat.page.evaluate(nameOfFocused));
    }
    assert.deepEqual(order, wanted);
  }
  const chat = await world.chat(accountId, '', await world.context({ viewport: SMALL.upright }));
  await chat.page.getByRole('link', { name: TO }).press('Enter');
  await until('the heading to have the focus', () => chat.page.evaluate(nameOfFocused), (name) => name === 'contact');
});

/** In the page. */
function nameOfFocused() {
  const { id, tagName, textContent, dataset } = document.activeElement;
  return id || (dataset.to ? 'link' : textContent.trim() || tagName);
}

const world = await World.start(JSON.parse(process.env.WORLD));
await run(world);
await world.end();
