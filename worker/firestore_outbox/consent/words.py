"""Words with which a person asks for no more campaigns, or for them again: by language, and an account's own.

Only a message that is the word and nothing else counts: "Stop!" does, "stop by at nine" does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

LONGEST = 40
"""Characters of a message that can be such a word."""


class Wish(StrEnum):
    OUT = "out"
    IN = "in"


OUT: Mapping[str, frozenset[str]] = {
    "ar": frozenset({"توقف", "إلغاء", "الغاء الاشتراك"}),
    "de": frozenset({"stopp", "abmelden", "austragen", "keine werbung"}),
    "en": frozenset({"stop", "unsubscribe", "opt out", "opt-out", "stop all", "stopall"}),
    "es": frozenset({"parar", "alto", "baja", "cancelar suscripción", "darse de baja"}),
    "fr": frozenset({"arret", "arrêt", "désabonner", "désinscrire", "stop pub"}),
    "hi": frozenset({"रोकें", "बंद करें", "बंद"}),
    "id": frozenset({"berhenti", "henti"}),
    "it": frozenset({"basta", "disiscrivi", "annulla iscrizione"}),
    "ms": frozenset({"berhenti", "henti", "tamat"}),
    "nl": frozenset({"afmelden", "uitschrijven"}),
    "pt": frozenset({"pare", "parar", "sair", "cancelar inscrição"}),
    "tr": frozenset({"dur", "iptal", "ret"}),
    "zh": frozenset({"退订", "停止", "取消訂閱"}),
}
"""Language -> words, in lower case. "stop" counts in every language."""
IN: Mapping[str, frozenset[str]] = {
    "de": frozenset({"anmelden", "start"}),
    "en": frozenset({"start", "unstop", "subscribe", "opt in", "opt-in"}),
    "es": frozenset({"alta", "iniciar"}),
    "fr": frozenset({"abonner", "reprendre"}),
    "id": frozenset({"mulai"}),
    "ms": frozenset({"mula"}),
    "pt": frozenset({"iniciar", "voltar"}),
}
EVERYWHERE = frozenset({"stop"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """`accounts/{id}.optOut`. Changes only when a person edits the account."""

    is_on: bool = True
    languages: frozenset[str] | None = None
    """None: all that are known here."""
    own: frozenset[str] = frozenset()
    """Words of the account's own, with which people opt out."""


DEFAULT = Words()


def words_of(raw: Any) -> Words:
    """As the account says. What is malformed is as if it were absent: a person who says stop must be heard."""
    if not isinstance(raw, Mapping):
        return DEFAULT
    languages, own = raw.get("languages"), raw.get("words")
    return Words(
        is_on=raw.get("off") is not True,
        languages=frozenset(map(str, languages)) if isinstance(languages, list) else None,
        own=frozenset(_plain(str(word)) for word in own) if isinstance(own, list) else frozenset(),
    )


def wish_in(text: str, words: Words = DEFAULT) -> Wish | None:
    """What a person asks for with this message; None: it is about something else."""
    said = _plain(text) if len(text) <= LONGEST else ""
    if not said or not words.is_on:
        return None
    if said in EVERYWHERE or said in words.own or _is_among(said, OUT, words):
        return Wish.OUT
    return Wish.IN if _is_among(said, IN, words) else None


_PHONE = re.compile(r"\+?([0-9]{6,20})(@c\.us|@s\.whatsapp\.net)?")


def key_of(address: str) -> str:
    """The same for all ways to write one phone number: providers name a sender in another form than a target has."""
    phone = _PHONE.fullmatch(address)
    return phone[1] if phone else address


def forms_of(address: str) -> tuple[str, ...]:
    """The ways in which a target may have this address."""
    key = key_of(address)
    return (
        (address,) if key == address and not key.isdigit() else (key, f"+{key}", f"{key}@c.us", f"{key}@s.whatsapp.net")
    )


def _is_among(said: str, table: Mapping[str, frozenset[str]], words: Words) -> bool:
    return any(said in known for name, known in table.items() if words.languages is None or name in words.languages)


def _plain(text: str) -> str:
    """In lower case, without what stands around the word."""
    return " ".join(text.casefold().strip(" \t\r\n.,!?;:\"'*_()[]…。！").split())
