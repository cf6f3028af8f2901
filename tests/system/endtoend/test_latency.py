"""The short sister of `make bench-latency`: on a busy machine times say nothing, and what is lost says a lot."""

from __future__ import annotations

import pytest

from bench.latency import figures
from bench.streams import Kind, measure
from tests.system.endtoend.conftest import World


async def test_a_steady_stream_is_sent_once_and_in_order(embedded: World, capsys: pytest.CaptureFixture[str]) -> None:
    run = await measure(embedded.stack, Kind(10.0), 10.0)
    assert len(run.messages) == 100
    assert run.faults == []
    with capsys.disabled():
        print(f"\n10 messages a second, embedded stack: {figures(run)['writeToCallMs']} ms from write to call")
