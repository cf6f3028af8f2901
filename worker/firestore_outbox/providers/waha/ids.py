"""WAHA's ids: of chats, of messages, and the one that we choose ourselves.

A chat is `49151…@c.us` (a person), `…@g.us` (a group) or `…@lid` (a person who hides the number). A message is
`{true|false}_{chat}_{id}`, in groups with `_{participant}` behind it; only the part in the middle is the same in every
place that tells of the message, so that is what we keep and compare.

For a text the sender may choose the id. Ours follows from the request and the part alone: a worker that knows the
message can tell which id its receipts will carry, also if the call was never answered.
"""

from __future__ import annotations

import re
from hashlib import sha256

from firestore_outbox.messages.correlation import Correlation

_DIGITS = re.compile(r"\+?([0-9]{5,20})", re.ASCII)
_CHAT = re.compile(r"([0-9A-Za-z.:-]{1,64})@(c\.us|g\.us|lid|s\.whatsapp\.net)", re.ASCII)
_MESSAGE = re.compile(r"(true|false)_([^_]{1,128})_([^_]{1,128})(?:_.{1,128})?", re.ASCII)
_BARE = re.compile(r"[0-9A-Za-z.-]{1,128}", re.ASCII)

_PEOPLE = frozenset({"c.us", "s.whatsapp.net"})
"""The second is the same address in the words of the engines; WAHA asks not to send to it in that form."""


def chat_of(to: str) -> str | None:
    """The chat to send to; None for what is no address here."""
    if found := _DIGITS.fullmatch(to):
        return f"{found[1]}@c.us"
    if found := _CHAT.fullmatch(to):
        return f"{found[1]}@{'c.us' if found[2] in _PEOPLE else found[2]}"
    return None


def address_of(chat: str) -> str | None:
    """What to write into `to` to answer: the digits of a person, otherwise the chat as it is."""
    found = _CHAT.fullmatch(chat)
    if found is None:
        return None
    return found[1] if found[2] in _PEOPLE and found[1].isdigit() else f"{found[1]}@{found[2]}"


def message_id_in(text: str) -> str | None:
    """The part of a message's id that is the same everywhere; None for what is no id."""
    if found := _MESSAGE.fullmatch(text):
        return found[3]
    return text if _BARE.fullmatch(text) else None


def is_from_me(text: str) -> bool | None:
    """Whether a message's id says that the account wrote it; None if it does not say."""
    found = _MESSAGE.fullmatch(text)
    return None if found is None else found[1] == "true"


def chosen_id(correlation: Correlation) -> str:
    """In the form of WhatsApp's own web client. The same for each attempt at this part."""
    return "3EB0" + sha256(correlation.key.encode()).hexdigest()[:18].upper()
