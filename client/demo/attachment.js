// The file beside the text: chosen, checked, shown, and uploaded when the message is sent.

import { uploadFile } from '../outbox.js';
import { service } from './files.js';

const $ = (id) => document.getElementById(id);
const MEGABYTE = 1_000_000;

/** @returns what the composer needs: whether there is a file, and its part of a message. */
export function openAttachment({ files, open, problem }) {
  let chosen = null;
  $('attach').hidden = !files;
  if (files) $('file').accept = files.types.join(',');

  function choose(file) {
    const fault = file && faultOf(file, files);
    chosen = fault ? null : file;
    $('file').value = '';
    problem(fault ?? '');
    $('attached').hidden = !chosen;
    $('text').required = !chosen;
    $('upload').hidden = true;
    $('attached-name').textContent = chosen ? `${chosen.name} (${(chosen.size / MEGABYTE).toFixed(1)} MB)` : '';
    if ($('preview').src) URL.revokeObjectURL($('preview').src);
    $('preview').removeAttribute('src');
    $('preview').hidden = !chosen?.type.startsWith('image/');
    if (!$('preview').hidden) $('preview').src = URL.createObjectURL(chosen);
  }

  $('file').addEventListener('change', () => choose($('file').files[0] ?? null));
  $('detach').addEventListener('click', () => choose(null));

  return {
    get isThere() {
      return chosen !== null;
    },
    remove: () => choose(null),
    /** The upload goes on where it stopped, if it was begun before. */
    upload: () => {
      $('upload').hidden = false;
      const onProgress = ({ sent, total }) => ($('upload').value = sent / total);
      return uploadFile({ ...service(files, open.accountId), file: chosen, onProgress });
    },
  };
}

function faultOf({ size, type }, { maxBytes, types }) {
  if (!size) return 'The file is empty.';
  if (size > maxBytes) return `The file is too large: at most ${maxBytes / MEGABYTE} MB can be sent.`;
  const isTaken = types.some((one) => (one.endsWith('*') ? type.startsWith(one.slice(0, -1)) : type === one));
  return isTaken ? null : 'Files of this type cannot be sent.';
}
