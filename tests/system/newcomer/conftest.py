"""A machine with nothing on it, and free ports."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.client.node import require_node
from tests.docs.snippets import ROOT
from tests.npm_registry import registry
from tests.system.newcomer.machine import Machine, new_machine
from tests.system.newcomer.reading import took


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    require_node()
    with registry(ROOT / "node_modules") as address:
        with took("a checkout and .venv"):
            machine = new_machine(tmp_path_factory.mktemp("newcomer"), npm_registry=address)
        yield machine


@pytest.fixture
def base() -> int:
    """The first of nine free ports in a row, and one more for the page."""
    for first in range(23000, 60000, 20):
        if all(_is_free(first + offset) for offset in range(10)):
            return first
    raise AssertionError("no ports are free")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
