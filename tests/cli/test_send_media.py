"""`outbox send --media`: the file goes into the account's storage, and the message names it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.cli.support import Stack


def test_a_file_is_sent_with_its_caption(stack: Stack, tmp_path: Path) -> None:
    account, file = stack.account(), tmp_path / "cat.png"
    file.write_bytes(b"meow" * 1000)
    said = stack("send", "--account", account, "--to", "+491701", "--media", str(file), "--text", "look", "--json")
    assert said.code == 0, said
    request_id = said.json["requestId"]
    assert stack.read(f"outbox/{request_id}")["parts"] == [
        {
            "type": "media",
            "mediaId": hashlib.sha256(file.read_bytes()).hexdigest(),
            "mimeType": "image/png",
            "filename": "cat.png",
            "caption": "look",
        }
    ]
    stack.becomes(request_id, "sent")


def test_an_empty_file_sends_nothing(stack: Stack, tmp_path: Path) -> None:
    account, file = stack.account(), tmp_path / "cat.png"
    file.write_bytes(b"")
    said = stack("send", "--account", account, "--to", "+491701", "--media", str(file))
    assert (said.code, "is empty" in said.err) == (1, True)
    assert stack("list", "--account", account, "--json").json == []
