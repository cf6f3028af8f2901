// Files of messages: pictures are shown, everything else is a link.

import { fileLink } from '../outbox.js';

/** Where the files of an account are, and as whom to ask for them. */
export function service({ url, token }, accountId) {
  return { url, accountId, token };
}

/** Shows the files of a message that are there. One that is not there yet is looked for at the message's next change. */
export function showFiles(box, { files, accountId, parts }) {
  if (!files) return;
  parts.forEach((part, index) => {
    if (part.type !== 'media' || box.querySelector(`[data-part="${index}"]`) || box.dataset.looking) return;
    box.dataset.looking = part.mediaId;
    fileLink({ ...service(files, accountId), mediaId: part.mediaId })
      .then((link) => box.append(shown(link, part, index)))
      .catch((error) => console.info(error)) // its words stay: the type and the name
      .finally(() => delete box.dataset.looking);
  });
}

function shown({ url }, { mimeType, filename, caption }, index) {
  const isPicture = mimeType.startsWith('image/');
  const entry = document.createElement(isPicture ? 'img' : 'a');
  entry.dataset.part = index;
  if (isPicture) Object.assign(entry, { src: url, alt: caption ?? filename ?? 'picture' });
  else Object.assign(entry, { href: url, textContent: filename ?? mimeType, target: '_blank', rel: 'noopener noreferrer' });
  return entry;
}
