"""Cases: the parts of a message, one kind after the other, and what each must not be."""

from __future__ import annotations

from typing import Any

from tests.rules.actions import Case, parts, send
from tests.rules.people import AGENT
from tests.rules.scene import TEXT

MEDIA = {"type": "media", "mediaId": "m-1", "mimeType": "image/png"}
FULL_MEDIA = {**MEDIA, "mimeType": "audio/ogg; codecs=opus", "caption": "look", "filename": "a.ogg"}
TEMPLATE = {"type": "template", "name": "welcome", "language": "en_US", "params": ["Ann", ""]}
SEALED = {"type": "sealed", "keyVersion": 1, "ciphertext": "AQID-_"}
LARGEST_SEALED = {**SEALED, "keyVersion": 1_000_000, "ciphertext": "x" * 49_152}
LARGEST_TEMPLATE = {**TEMPLATE, "params": ["x" * 1024] * 16 + ["é" * 512] * 8 + ["x" * 128] * 64 + [""] * 12}
"""100 parameters of 32 KiB together."""
VALUES = {"header": ["Ann"], "body": ["Tuesday", ""], "buttons": ["", "t-1"]}
FILE = {"header": {"image": "https://example.com/a.png"}, "body": ["Tuesday"]}
LARGEST_VALUES = {
    **TEMPLATE,
    "params": {
        "header": {"document": "x" * 1024},
        "body": ["x" * 1024] * 15 + ["é" * 512] * 8,
        "buttons": ["x" * 128] * 64 + [""] * 12,
    },
}
"""The same in header, body and buttons."""


def values(**changes: Any) -> dict[str, Any]:
    return {**TEMPLATE, "params": {**VALUES, **changes}}


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
    "with a template with values for header, body and buttons": [values()],
    "with a template with a file in its header": [{**TEMPLATE, "params": FILE}],
    "with a template with values for nothing": [{**TEMPLATE, "params": {}}],
    "with a template with 100 values in header, body and buttons": [values(body=["x"] * 97)],
    "with a template with values of 32 KiB in header, body and buttons": [LARGEST_VALUES],
    "with ten templates with a file in each header": [{**TEMPLATE, "params": FILE}] * 10,
    "with parts of all kinds": [TEXT, FULL_MEDIA, TEMPLATE, SEALED],
    "with a sealed part": [SEALED],
    "with the largest sealed part": [LARGEST_SEALED],
    "with ten sealed parts": [SEALED] * 10,
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
    "a template with values for a footer": [values(footer=["x"])],
    "a template with a header that is a text": [values(header="Ann")],
    "a template with a header of two files": [values(header={"image": "a", "video": "b"})],
    "a template with a header of no file": [values(header={})],
    "a template with a header of an unknown kind": [values(header={"sound": "a"})],
    "a template with a header's file that is no text": [values(header={"image": 5})],
    "a template with a header's file of 1,025 characters": [values(header={"image": "x" * 1025})],
    "a template with a body that is a text": [values(body="Ann")],
    "a template with a number in its body": [values(body=[5])],
    "a template with buttons that are a map": [values(buttons={"0": "x"})],
    "a template with a button that is a map": [values(buttons=[{"index": 0}])],
    "a template with 101 values in header, body and buttons": [values(body=["x"] * 98)],
    "a template with values of 32 KiB and a byte in body and buttons": [
        values(header=[], body=["é" * 1024] * 16, buttons=["x"])
    ],
    "a template with another field": [{**TEMPLATE, "header": "x"}],
    "a part of an unknown type that looks sealed": [{**SEALED, "type": "locked"}],
    "a sealed part without a key version": [{"type": "sealed", "ciphertext": "AQ", "x": 1}],
    "a sealed part with key version 0": [{**SEALED, "keyVersion": 0}],
    "a sealed part with key version 1,000,001": [{**SEALED, "keyVersion": 1_000_001}],
    "a sealed part with half a key version": [{**SEALED, "keyVersion": 1.5}],
    "a sealed part without a ciphertext": [{"type": "sealed", "keyVersion": 1, "x": 1}],
    "a sealed part with an empty ciphertext": [{**SEALED, "ciphertext": ""}],
    "a sealed part with a ciphertext that is no base64url": [{**SEALED, "ciphertext": "A+/="}],
    "a sealed part with a ciphertext of 49,153 characters": [{**SEALED, "ciphertext": "x" * 49_153}],
    "a sealed part with its text beside it": [{**SEALED, "text": "hello"}],
    **{
        f"a bad part at place {place} of 10": [*[TEXT] * (place - 1), text(""), *[TEXT] * (10 - place)]
        for place in range(1, 11)
    },
}

CASES = [
    *(Case(f"an agent sends {what}", AGENT, send(parts(*good)), allowed=True) for what, good in ALLOWED.items()),
    *(Case(f"nothing is sent with {what}", AGENT, send(parts(*bad)), allowed=False) for what, bad in REFUSED.items()),
]
