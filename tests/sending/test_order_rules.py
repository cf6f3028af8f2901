from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from firestore_outbox.lane.hold_room import HoldRoom
from firestore_outbox.lane.lease import Hold
from firestore_outbox.lane.pacing import Allowance
from firestore_outbox.lane.state import Lane, ThreadHold
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.providers.outcome import ErrorCode, Outcome, Rejected, Retryable, Sent
from firestore_outbox.sending.completion import lane_after
from firestore_outbox.sending.decide import MarkSent, Policy, RetryAt, Verdict, decide
from firestore_outbox.sending.order import HoldsNow, holds_now, named_by_elapsed, waits_for_another
from firestore_outbox.sending.plan import claimed, plan
from tests.builders import ECHOES, NOW, account, at, message, s

HOLD = Hold(owner="w1", fence=1, asked_at=NOW, ttl=s(60))
NO_PACE = Allowance(sends=None, next_at=NOW)
LARGEST_HOLD_BYTES = 2 * (len("acme__1") + 20) + 128


def test_a_hold_shuts_its_thread_until_its_time() -> None:
    holds = {"t1": ThreadHold(until=at(10), request_id="request-1")}
    assert holds_now(holds, {"request-1"}, at(9)) == HoldsNow(shut={"t1": at(10)}, named={}, void=frozenset())


def test_after_its_time_a_hold_lets_only_its_message_go() -> None:
    first, second = message("request-1"), message("request-2", due=1)
    holds = holds_now({first.thread_id: ThreadHold(until=at(10), request_id="request-1")}, {"request-1"}, at(10))
    assert not waits_for_another(first, holds, busy=set())
    assert waits_for_another(second, holds, busy=set())


def test_a_hold_whose_message_is_gone_is_void() -> None:
    holds = holds_now({"t1": ThreadHold(until=at(10), request_id="request-1")}, set(), at(10))
    assert holds.void == {"t1"}


def test_a_hold_without_a_name_ends_with_its_time() -> None:
    assert holds_now({"t1": ThreadHold(until=at(10))}, set(), at(10)).void == {"t1"}


def test_the_documents_to_fetch_are_those_named_by_elapsed_holds() -> None:
    holds = {
        "t1": ThreadHold(until=at(10), request_id="request-1"),
        "t2": ThreadHold(until=at(90), request_id="request-2"),
        "t3": ThreadHold(until=at(10)),
    }
    assert named_by_elapsed(holds, at(10)) == ["request-1"]


def test_a_thread_in_flight_waits_and_another_does_not() -> None:
    nothing = holds_now({}, set(), NOW)
    mine, other = message("request-1", to="1"), message("request-2", to="2")
    assert waits_for_another(mine, nothing, busy={mine.thread_id})
    assert not waits_for_another(other, nothing, busy={mine.thread_id})


FAILING = Retryable(code=ErrorCode.PROVIDER_UNAVAILABLE, detail="down")
outcomes = st.lists(
    st.sampled_from([Sent(provider_message_id="x"), FAILING, Rejected(code=ErrorCode.REJECTED, detail="no")]),
    max_size=200,
)


@settings(max_examples=200)
@given(
    threads=st.lists(st.integers(0, 3), min_size=1, max_size=15),
    results=outcomes,
    page=st.integers(1, 6),
    finish=st.lists(st.integers(0, 100), max_size=200),
    held=st.integers(1, 4),
)
def test_no_message_overtakes_another_of_its_thread_and_no_thread_waits_for_another(
    threads: list[int], results: list[Outcome], page: int, finish: list[int], held: int
) -> None:
    """Four threads, a number of them held; three messages at a time, outcomes and completions in any order, and
    a query that sees a page."""
    queue = {f"request-{n:02}": message(f"request-{n:02}", to=str(to), due=n / 100) for n, to in enumerate(threads)}
    wanted = {to: [key for key, m in queue.items() if m.to == str(to)] for to in set(threads)}
    ended: dict[int, list[str]] = {to: [] for to in set(threads)}
    lane, now, flying = Lane(), at(1), list[OutboxMessage]()
    sender = account(cap=None, concurrency=3)
    results, finish = list(results), list(finish)
    for _ in range(2000):
        due = sorted(
            (m for m in queue.values() if m.status is OutboxStatus.QUEUED and m.order[0] <= now), key=lambda m: m.order
        )
        seen = due[:page] + [
            queue[key]
            for key in named_by_elapsed(lane.holds, now)
            if queue[key].status is OutboxStatus.QUEUED and queue[key] not in due[:page]
        ]
        busy = {m.thread_id for m in flying}
        room = HoldRoom(lane.holds, busy, room_bytes=held * LARGEST_HOLD_BYTES)
        made = plan(seen, lane=lane, account=sender, in_flight=busy, allowed=NO_PACE, room=room, now=now)
        lane = lane.without_holds(made.void_holds)
        for chosen in made.claims:
            assert chosen.thread_id not in {m.thread_id for m in flying}
            queue[chosen.request_id] = claimed(chosen, HOLD)
            flying.append(queue[chosen.request_id])
        if not flying:
            if all(m.status is not OutboxStatus.QUEUED for m in queue.values()):
                break
            now += s(1)
            continue
        done = flying.pop(finish.pop() % len(flying) if finish else 0)
        outcome = results.pop() if results else Sent(provider_message_id="x")
        verdict: Verdict = decide(done, outcome, policy=Policy(), capability=ECHOES, now=now, jitter=0.5)
        queue[done.request_id] = verdict.message
        lane = lane_after(lane, verdict, now)
        if not isinstance(verdict, RetryAt):
            ended[int(done.to)].append(done.request_id)
    assert ended == wanted
    assert lane.holds == {} or all(hold.request_id is None for hold in lane.holds.values())


def test_a_retrying_message_holds_back_its_own_thread_and_no_other() -> None:
    first, second, other = (
        message("request-1", to="1"),
        message("request-2", to="1", due=1),
        message("request-3", to="2", due=2),
    )
    verdict = decide(claimed(first, HOLD), FAILING, policy=Policy(), capability=ECHOES, now=at(3), jitter=0.5)
    lane = lane_after(Lane(), verdict, at(3))
    sender = account(cap=None)

    def goes(moment: float, *candidates: OutboxMessage) -> list[str]:
        room = HoldRoom(lane.holds, ())
        made = plan(candidates, lane=lane, account=sender, in_flight=set(), allowed=NO_PACE, room=room, now=at(moment))
        return [chosen.request_id for chosen in made.claims]

    assert goes(3.5, second, other) == ["request-3"]
    assert goes(4, second, other, verdict.message) == ["request-3", "request-1"]
    assert goes(4, second, other) == ["request-2", "request-3"]  # the named one is gone: cancelled, say


def test_the_hold_is_dropped_when_its_message_is_sent() -> None:
    first = claimed(message("request-1"), HOLD)
    retry = decide(first, FAILING, policy=Policy(), capability=ECHOES, now=NOW, jitter=0.5)
    lane = lane_after(Lane(), retry, NOW)
    again = claimed(retry.message, HOLD)
    sent = decide(again, Sent(provider_message_id="x"), policy=Policy(), capability=ECHOES, now=at(2), jitter=0.5)
    assert isinstance(sent, MarkSent)
    assert lane_after(lane, sent, at(2)).holds == {}
