"""Cases: the parts of a message, one kind after the other, and what each must not be."""

from __future__ import annotations

from typing import Any

from tests.rules.actions import Case, parts, send
from tests.rules.people import AGENT
from tests.rules.scene import TEXT

MEDIA = {"type": "media", "mediaId": "m-1", "mimeType": "image/png"}
FULL_MEDIA = {**MEDIA, "mimeType": "audio/ogg; codecs=opus", "caption": "look", "filename": "a.ogg"}
TEMPLATE = {"type": "template", "name": "welcome", "language": "en_US", "params": ["Ann", ""]}
LARGEST_TEMPLATE = {**TEMPLATE, "params": ["x" * 1024] * 16 + ["é" * 512] * 8 + ["x" * 128] * 64 + [""] * 12}
"""100 parameters of 32 KiB together."""


def text(value: Any) -> dict[str, Any]:
    return {"type": "text", "text": value}


ALLOWED: dict[str, list[Any]] = {
    "with the longest text": [text("x" * 4096)],
    "with line breaks": [text("one\ntwo\n")],
    "with media": [MEDIA],
    "with media, caption and filename": [FULL_MEDIA],
    "with a template": [TEMPLATE],
    "with a template without parameters": [{**TEMPLATE, "params": []}],
    "with a template with 100 parameters, the most": [{**TEMPLATE, "params": ["Ann"] * 100}],
    "with a template with a parameter of 1,024 characters, the longest": [{**TEMPLATE, "params": ["é" * 1024]}],
    "with a template with parameters of 32 KiB, the most together": [LARGEST_TEMPLATE],
    "with parts of all kinds": [TEXT, FULL_MEDIA, TEMPLATE],
    "with ten texts": [text("x" * 4096)] * 10,
    "with ten media, the most that rules have to look at": [FULL_MEDIA] * 10,
    "with ten templates": [TEMPLATE] * 10,
    "with seven of the largest templates": [LARGEST_TEMPLATE] * 7,
}

REFUSED: dict[str, list[Any]] = {
    "no parts": [],
    "eleven parts": [TEXT] * 11,
    "a part that is no map": ["hello"],
    "a part of an unknown type": [{"type": "video", "text": "hello"}],
    "a part of an unknown type that looks like media": [{**MEDIA, "type": "video"}],
    "a part of an unknown type that looks like a template": [{**TEMPLATE, "type": "poll"}],
    "a part without a type": [{"text": "hello"}],
    "a text part without text": [{"type": "text"}],
    "an empty text": [text("")],
    "a text that is a number": [text(5)],
    "a text that is a list": [text(["hello"])],
    "a text of 4,097 characters": [text("x" * 4097)],
    "a text part with another field": [{**TEXT, "bold": True}],
    "media without an id": [{"type": "media", "mimeType": "image/png"}],
    "media with a slash in its id": [{**MEDIA, "mediaId": "a/b"}],
    "media with an empty id": [{**MEDIA, "mediaId": ""}],
    "media with an id of 513 characters": [{**MEDIA, "mediaId": "x" * 513}],
    "media without a type": [{"type": "media", "mediaId": "m-1"}],
    "media of a type without a slash": [{**MEDIA, "mimeType": "png"}],
    "media of a type of 201 characters": [{**MEDIA, "mimeType": f"image/{'x' * 195}"}],
    "media with an empty caption": [{**MEDIA, "caption": ""}],
    "media with a caption of 4,097 characters": [{**MEDIA, "caption": "x" * 4097}],
    "media with a caption that is no text": [{**MEDIA, "caption": None}],
    "media with a filename of 513 characters": [{**MEDIA, "filename": "x" * 513}],
    "media with a filename that is no text": [{**MEDIA, "filename": 7}],
    "media with another field": [{**MEDIA, "url": "http://example.com/a.png"}],
    "a template without a name": [{"type": "template", "language": "en", "params": [], "x": 1}],
    "a template with an empty name": [{**TEMPLATE, "name": ""}],
    "a template with a language of one letter": [{**TEMPLATE, "language": "e"}],
    "a template with a language of 36 letters": [{**TEMPLATE, "language": "e" * 36}],
    "a template without parameters' list": [{"type": "template", "name": "n", "language": "en"}],
    "a template with parameters that are no list": [{**TEMPLATE, "params": "Ann"}],
    "a template with a number as parameter": [{**TEMPLATE, "params": ["Ann", 5]}],
    "a template with a map as parameter": [{**TEMPLATE, "params": [{"text": "Ann"}]}],
    "a template with 101 parameters": [{**TEMPLATE, "params": [""] * 101}],
    "a template with a parameter of 1,025 characters": [{**TEMPLATE, "params": ["Ann", "x" * 1025, "Ann"]}],
    "a template with parameters of 32 KiB and a byte": [{**TEMPLATE, "params": ["é" * 1024] * 16 + ["x"]}],
    "a template with another field": [{**TEMPLATE, "header": "x"}],
    **{
        f"a bad part at place {place} of 10": [*[TEXT] * (place - 1), text(""), *[TEXT] * (10 - place)]
        for place in range(1, 11)
    },
}

CASES = [
    *(Case(f"an agent sends {what}", AGENT, send(parts(*good)), allowed=True) for what, good in ALLOWED.items()),
    *(Case(f"nothing is sent with {what}", AGENT, send(parts(*bad)), allowed=False) for what, bad in REFUSED.items()),
]
