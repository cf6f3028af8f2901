"""The commands of a document as a newcomer types them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from firestore_outbox.cli.local import OFFSETS, PORTS
from tests.docs.commands import steps

PAGE_PORT = 8000


@contextmanager
def took(what: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    print(f"{time.monotonic() - started:7.1f} s  {what}")


def moved(text: str, base: int) -> str:
    """The same with the ports of this test."""
    for name, offset in OFFSETS.items():
        text = text.replace(f"127.0.0.1:{PORTS[name]}", f"127.0.0.1:{base + offset}")
    text = text.replace(f"'127.0.0.1', {PORTS['firestore']}", f"'127.0.0.1', {base}")
    text = text.replace(f"http.server {PAGE_PORT}", f"http.server {base + 9}")
    return re.sub(r"outbox dev$", f"outbox dev --port-base {base}", text, flags=re.MULTILINE)


def written(document: str, base: int) -> list[str]:
    """The blocks of commands, each without its comments."""
    blocks = (re.sub(r" +# .*$", "", step.commands, flags=re.MULTILINE) for step in steps(document))
    return [moved(block, base) for block in blocks]


def last_line(block: str) -> tuple[str, str]:
    """What comes before the last command, and that command, which goes on."""
    *others, last = block.strip().splitlines()
    return "\n".join(others), last


def exported(output: str) -> str:
    (line,) = re.findall(r"^export .+$", output, re.MULTILINE)
    return str(line)
