"""docs/architecture.md names every file in which a function runs while one message is sent."""

from __future__ import annotations

import pytest

from tests.system.trace.run import traced_files
from tests.system.trace.walk import listed


@pytest.mark.parametrize("short_turns", [False, True], ids=["by a worker", "by the short path"])
async def test_the_page_names_every_file_that_a_message_passes_through(short_turns: bool) -> None:
    files = set(await traced_files(short_turns=short_turns))
    assert files - {*listed("walk"), *listed("supporting"), *listed("details")} == set()
    if not short_turns:
        assert {*listed("walk"), *listed("supporting")} - files == set(), (
            "the page names a file that a message does not pass"
        )
