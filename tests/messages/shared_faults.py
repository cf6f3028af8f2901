"""Faults that several parts of the product find, each with the one sentence for it.

The fields are those of a message as the HTTP API takes it. Where a part knows a field by another name, or has no such
field, it leaves the row out.
"""

from __future__ import annotations

from typing import Any

from firestore_outbox.messages import faults

TEXT = {"type": "text", "text": "hello"}
IMAGE = {"type": "media", "mediaId": "m-1", "mimeType": "image/png"}
TEMPLATE = {"type": "template", "name": "reminder", "language": "en", "params": []}

SHARED: dict[str, tuple[dict[str, Any], str]] = {
    "a short request id": ({"requestId": "short"}, f"requestId {faults.REQUEST_ID}"),
    "a request id of Firestore's own": ({"requestId": "__abcdef__"}, f"requestId {faults.REQUEST_ID}"),
    "a request id that is a number": ({"requestId": 12345678}, "requestId must be a text"),
    "an account with two underscores": ({"accountId": "a__b"}, f"accountId {faults.ACCOUNT_ID}"),
    "an account with a slash": ({"accountId": "a/b"}, f"accountId {faults.ACCOUNT_ID}"),
    "an account that is a star": ({"accountId": "*"}, f"accountId {faults.ACCOUNT_ID}"),
    "an account that is a number": ({"accountId": 7}, "accountId must be a text"),
    "a recipient with a blank": ({"to": "a b"}, f"to {faults.ADDRESS}"),
    "a recipient with an underscore in front": ({"to": "_a"}, f"to {faults.ADDRESS}"),
    "no parts": ({"parts": []}, "parts must be a list of 1 to 10 parts"),
    "eleven parts": ({"parts": [TEXT] * 11}, "parts must be a list of 1 to 10 parts"),
    "parts that are a text": ({"parts": "hello"}, "parts must be a list of 1 to 10 parts"),
    "a part of an unknown type": ({"parts": [{"type": "poll"}]}, f"parts[0].type {faults.PART_TYPE}"),
    "a part that is a text": ({"parts": ["hello"]}, f"parts[0].type {faults.PART_TYPE}"),
    "an empty text": ({"parts": [{"type": "text", "text": ""}]}, "parts[0].text is empty"),
    "a long text": (
        {"parts": [TEXT, {"type": "text", "text": "x" * 4097}]},
        "parts[1].text has 4,097 characters; at most 4,096 are allowed",
    ),
    "a file with a path": ({"parts": [{**IMAGE, "mediaId": "a/b"}]}, f"parts[0].mediaId {faults.MEDIA_ID}"),
    "a file of no type": ({"parts": [{**IMAGE, "mimeType": "png"}]}, f"parts[0].mimeType {faults.MEDIA_TYPE}"),
    "a short language": ({"parts": [{**TEMPLATE, "language": "e"}]}, "parts[0].language is too short"),
    "no version of a key": (
        {"parts": [{"type": "sealed", "keyVersion": 0, "ciphertext": "AQ"}]},
        f"parts[0].keyVersion {faults.KEY_VERSION}",
    ),
    "a ciphertext that is no base64url": (
        {"parts": [{"type": "sealed", "keyVersion": 1, "ciphertext": "A+/="}]},
        f"parts[0].ciphertext {faults.CIPHERTEXT}",
    ),
    "params that are a text": ({"parts": [{**TEMPLATE, "params": "x"}]}, "parts[0].params must be a list of texts"),
    "a header that is a text": (
        {"parts": [{**TEMPLATE, "params": {"header": "x"}}]},
        "parts[0].params.header must be a list of texts",
    ),
    "a header of two files": (
        {"parts": [{**TEMPLATE, "params": {"header": {"image": "a", "video": "b"}}}]},
        f"parts[0].params.header {faults.HEADER_FILE}",
    ),
    "values for a footer": (
        {"parts": [{**TEMPLATE, "params": {"footer": ["x"]}}]},
        "parts[0].params.footer is unknown",
    ),
    "a number for a button": (
        {"parts": [{**TEMPLATE, "params": {"buttons": ["a", 5]}}]},
        "parts[0].params.buttons[1] must be a text",
    ),
    "101 values in body and buttons": (
        {"parts": [{**TEMPLATE, "params": {"body": [""] * 50, "buttons": [""] * 51}}]},
        "parts[0].params has 101 entries; at most 100 are allowed",
    ),
    "101 params": (
        {"parts": [{**TEMPLATE, "params": [""] * 101}]},
        "parts[0].params has 101 entries; at most 100 are allowed",
    ),
    "too many bytes of params": (
        {"parts": [{**TEMPLATE, "params": ["é" * 1024] * 16 + ["x"]}]},
        "parts[0].params has 32,769 bytes of text; at most 32,768 are allowed",
    ),
}
