// The list of conversations: those that there are, the latest first, and contacts without a message.

export function showThreads(list, { accountId, threads, contacts, to, nameOf, address, go }) {
  const others = new Set([...contacts, ...(to ? [to] : [])]);
  threads.forEach((thread) => others.delete(thread.to));
  const empty = [...others].map((contact) => ({ to: contact, lastMessageText: 'No messages yet', unreadCount: 0 }));
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.to : null;
  list.replaceChildren(...[...threads, ...empty].map(item));
  if (focused) [...list.querySelectorAll('a')].find((link) => link.dataset.to === focused)?.focus();

  function item(thread) {
    const link = document.createElement('a');
    link.href = address(accountId, thread.to);
    link.dataset.to = thread.to;
    if (thread.to === to) link.setAttribute('aria-current', 'true');
    link.append(element('span', 'name', nameOf(thread.to)), element('span', 'last', thread.lastMessageText));
    if (thread.unreadCount) {
      const count = element('span', 'unread', String(thread.unreadCount));
      count.setAttribute('aria-label', `${thread.unreadCount} unread`);
      link.append(count);
    }
    link.addEventListener('click', (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // another tab or window
      event.preventDefault();
      go(accountId, thread.to);
    });
    const entry = document.createElement('li');
    entry.append(link);
    return entry;
  }
}

function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}
