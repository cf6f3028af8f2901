"""How far a handler has come: every event is handled, and none twice, however late it becomes visible."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.handlers.progress import Progress, advanced, read_from, replaying, request_id, unhandled

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OVERLAP = timedelta(seconds=10)


@dataclass(frozen=True)
class Stamped:
    id: str
    at: datetime


def event(name: str, seconds: float) -> Stamped:
    return Stamped(name, NOW + timedelta(seconds=seconds))


@given(
    st.lists(
        st.tuples(st.floats(0, 60), st.floats(0, 9.9)),
        min_size=1,
        max_size=40,
    ),
    st.lists(st.floats(0, 80), min_size=1, max_size=15),
)
def test_every_event_is_handled_exactly_once_although_it_appears_late(
    written: list[tuple[float, float]], reads: list[float]
) -> None:
    """`written`: the time of each event, and how much later it becomes visible. `reads`: when runs read."""
    events = [(event(str(number), at), at + gap) for number, (at, gap) in enumerate(written)]
    progress: Progress | None = None
    handled: list[str] = []
    for moment in sorted([*reads, 100.0]):
        since = read_from(progress, OVERLAP)
        visible = [one for one, seen_at in events if seen_at <= moment and (since is None or one.at >= since)]
        new = unhandled(visible, progress)
        handled += [one.id for one in new]
        progress = advanced(progress, new, OVERLAP)
    assert sorted(handled) == sorted(one.id for one, _ in events)


def test_the_ids_of_a_runs_messages_change_when_it_succeeded_and_not_before() -> None:
    before = Progress(at=NOW, seen={"a": NOW})
    after = advanced(before, [event("b", 1)], OVERLAP)
    assert request_id("k", "x", before, 0) == request_id("k", "x", before, 0)
    assert len({request_id("k", "x", one, n) for one in (None, before, after) for n in (0, 1)}) == 6
    assert request_id("k", "x", before, 0) != request_id("k", "y", before, 0)


def test_a_replayed_event_is_new_once() -> None:
    old = event("a", 0)
    done = advanced(None, [old], OVERLAP)
    assert unhandled([old], done) == []
    again = replaying(done, ["a"], NOW)
    assert unhandled([old], again) == [old]
    assert unhandled([old], advanced(again, [old], OVERLAP)) == []
