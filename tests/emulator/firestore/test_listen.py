"""What a listener holds at each marker is what the query finds at that time: never a mixture, never older."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random

from hypothesis import given

from firestore_emulator.documents.protos import ListenRequest
from firestore_emulator.documents.times import micros_of
from firestore_emulator.listen.messages import ADD, CURRENT, NO_CHANGE, REMOVE, RESET
from firestore_emulator.listen.stream import listen
from firestore_emulator.rpc.errors import RpcError
from firestore_emulator.rpc.service import Call
from firestore_emulator.rules.guard import Guard
from firestore_emulator.storage.engine import Engine
from tests.conformance.wire import Proto, delete, query, set_, where
from tests.emulator.firestore import chance
from tests.emulator.firestore.support import DATABASE, ROOT, SteppingClock, commit, examples, name, parsed, paths, place


class Listener:
    """A stream on an engine, folded into what a client library would show."""

    def __init__(self, engine: Engine) -> None:
        self._requests: asyncio.Queue[Proto] = asyncio.Queue()
        guard = Guard(engine)
        self._stream = aiter(listen(engine, self._asked(), lambda database: database, guard, Call(metadata={})))
        self._next: asyncio.Task[Proto] | None = None
        self.view: dict[int, dict[str, bytes]] = {}
        self.kinds: list[str] = []
        self.causes: dict[int, Proto] = {}

    async def _asked(self) -> AsyncIterator[Proto]:
        while True:
            yield await self._requests.get()

    def add_query(self, number: int, structured: Proto) -> None:
        request = ListenRequest(database=DATABASE)
        request.add_target.target_id = number
        request.add_target.query.parent = ROOT
        request.add_target.query.structured_query.CopyFrom(structured)
        self._requests.put_nowait(request)

    def add_documents(self, number: int, *documents: str) -> None:
        request = ListenRequest(database=DATABASE)
        request.add_target.target_id = number
        request.add_target.documents.documents.extend(name(path) for path in documents)
        self._requests.put_nowait(request)

    def remove(self, number: int) -> None:
        self._requests.put_nowait(ListenRequest(database=DATABASE, remove_target=number))

    async def markers(self) -> list[tuple[int, dict[int, dict[str, bytes]]]]:
        """Reads all there is now: each consistent moment that the stream declares, and the view at it."""
        seen = []
        while (message := await self._read()) is not None:
            if (moment := self._fold(message)) is not None:
                seen.append((moment, {number: dict(shown) for number, shown in self.view.items()}))
        return seen

    async def _read(self) -> Proto | None:
        if self._next is None:
            self._next = asyncio.ensure_future(anext(self._stream))
        for _ in range(20):  # turns of the loop: more than a message ever takes
            if self._next.done():
                message = self._next.result()
                self._next = None
                return message
            await asyncio.sleep(0)
        return None

    def _fold(self, message: Proto) -> int | None:
        kind = message.WhichOneof("response_type")
        self.kinds.append(kind)
        match kind:
            case "document_change":
                change = message.document_change
                for number in change.target_ids:
                    self.view[number][change.document.name] = change.document.SerializeToString(deterministic=True)
                for number in change.removed_target_ids:
                    self.view[number].pop(change.document.name, None)
            case "document_delete" | "document_remove":
                gone = getattr(message, kind)
                for number in gone.removed_target_ids:
                    self.view[number].pop(gone.document, None)
            case "target_change":
                return self._fold_target(message.target_change)
        return None

    def _fold_target(self, change: Proto) -> int | None:
        match change.target_change_type:
            case kind if kind in (ADD, RESET):
                self.view.update({number: {} for number in change.target_ids})
            case kind if kind == REMOVE:
                for number in change.target_ids:
                    self.view.pop(number, None)
                    self.causes[number] = change.cause
            case kind if kind == NO_CHANGE and not change.target_ids:
                return micros_of(change.read_time)
            case kind if kind == CURRENT:
                assert change.resume_token
        return None

    async def close(self) -> None:
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)
        await self._stream.aclose()  # type: ignore[attr-defined]  # it is a generator


def answer(engine: Engine, structured: Proto) -> dict[str, bytes]:
    found = engine.run(parsed(structured))
    return {document.name: document.SerializeToString(deterministic=True) for document in found}


def store(engine: Engine, writes: chance.Commit) -> int:
    return commit(
        engine, *(delete(name(path)) if data is None else set_(name(path), data) for path, data in writes)
    ).commit_micros


@given(chance.randomness)
@examples(120)
def test_at_each_marker_a_listener_holds_what_the_query_finds_at_that_time(rng: Random) -> None:
    asyncio.run(_compare(rng))


async def _compare(rng: Random) -> None:
    engine = Engine(clock=SteppingClock())
    structured = [chance.structured_query(rng) for _ in range(8)]
    targets = {number: one for number, one in enumerate(structured, start=1) if is_valid(one)}
    history: list[tuple[int, dict[int, dict[str, bytes]]]] = []

    def note(moment: int) -> None:
        history.append((moment, {number: answer(engine, one) for number, one in targets.items()}))

    def at(micros: int) -> dict[int, dict[str, bytes]]:
        return [state for moment, state in history if moment <= micros][-1]

    note(engine.now_micros())
    for _ in range(3):
        note(store(engine, chance.commit(rng)))
    listener = Listener(engine)
    last = 0
    waiting = list(targets.items())
    for _ in range(8):
        # Targets and commits come in any order, and several before the stream has its turn.
        for _ in range(rng.randrange(4)):
            if waiting and rng.random() < 0.5:
                listener.add_query(*waiting.pop())
                if rng.random() < 0.5:
                    await asyncio.sleep(0)  # the stream may have taken the request, and not answered it
            else:
                note(store(engine, chance.commit(rng)))
        for moment, view in await listener.markers():
            assert moment >= last, "time goes back"
            last = moment
            assert view == {number: shown for number, shown in at(moment).items() if number in view}
    assert listener.view == {number: shown for number, shown in history[-1][1].items() if number in listener.view}
    await listener.close()
    assert engine.after_commit == [], "a stream that has ended watches no more"
    engine.close()


def is_valid(structured: Proto) -> bool:
    try:
        question = parsed(structured)
    except RpcError:
        return False
    is_refused = question.is_by_name_alone and question.orders[0].descending
    return not is_refused and question.collection_id is not None


async def test_parts_of_a_commit_are_never_shown_without_the_rest() -> None:
    """Two commits before the stream has its turn; the first marker must not hold half of the second."""
    engine = Engine()
    store(engine, [("c/1", {"n": 1}), ("c/2", {"n": 2})])
    listener = Listener(engine)
    listener.add_query(1, query("c", order=["n"], limit=10))
    await listener.markers()
    store(engine, [("c/1", {"n": 1, "first": True})])
    store(engine, [("c/2", {"n": 2, "second": True}), ("c/3", {"n": 3, "second": True})])
    for _, view in await listener.markers():
        has = [b"second" in view[1].get(name(path), b"") for path in ("c/2", "c/3")]
        assert has in ([False, False], [True, True])
    await listener.close()
    engine.close()


async def test_what_came_and_went_before_the_first_answer_is_never_shown() -> None:
    engine = Engine()
    listener = Listener(engine)
    listener.add_query(1, query("c"))
    listener.add_documents(2, "c/1")
    first = asyncio.ensure_future(listener.markers())
    # The request has arrived when the stream is first asked for a message; these come before it is answered.
    await asyncio.sleep(0)
    store(engine, [("c/1", {"n": 1})])
    store(engine, [("c/1", None)])
    seen = await first + await listener.markers()
    times = [moment for moment, _ in seen]
    assert times == sorted(times)
    current = engine.now_micros()
    assert all(view == {1: {}, 2: {}} or moment < current for moment, view in seen)
    await listener.close()
    engine.close()


async def test_a_target_that_is_removed_is_heard_of_no_more() -> None:
    engine = Engine()
    listener = Listener(engine)
    listener.add_query(1, query("c"))
    listener.add_query(2, query("d"))
    await listener.markers()
    listener.remove(1)
    await listener.markers()
    listener.kinds.clear()
    store(engine, [("c/1", {})])
    await listener.markers()
    assert listener.kinds == []
    store(engine, [("d/1", {})])
    await listener.markers()
    assert list(listener.view[2]) == [name("d/1")]
    await listener.close()
    engine.close()


async def test_a_target_that_cannot_be_served_is_removed_with_the_reason_and_the_stream_lives_on() -> None:
    engine = Engine()
    listener = Listener(engine)
    listener.add_query(1, query("c", where("a", "in", [])))
    listener.add_query(2, query("c"))
    store(engine, [("c/1", {})])
    await listener.markers()
    assert listener.causes[1].code == 3
    assert list(listener.view) == [2]
    assert list(listener.view[2]) == [name("c/1")]
    await listener.close()
    engine.close()


async def test_a_change_elsewhere_says_nothing_to_a_query_without_a_limit() -> None:
    engine = Engine()
    listener = Listener(engine)
    listener.add_query(1, query("c", where("n", ">", 5)))
    await listener.markers()
    listener.kinds.clear()
    store(engine, [("c/1", {"n": 1})])
    store(engine, [("d/1", {"n": 9})])
    assert await listener.markers() == []
    store(engine, [("c/1", {"n": 6})])
    await listener.markers()
    assert listener.kinds == ["document_change", "target_change"]
    assert paths(engine.run(parsed(query("c", where("n", ">", 5))))) == ["/".join(place("c/1").segments)]
    await listener.close()
    engine.close()
