"""Event triggers: which change makes which event, and that it arrives in the end, whatever the receiver does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import httpx
import pytest
from grpc import aio

from firestore_emulator import virtual_time
from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.events.triggers import TYPE_PREFIX, Trigger, parse_trigger
from firestore_emulator.outgoing import Answered, HttpCall
from firestore_emulator.rpc.server import Server
from tests.conformance.backends import Backend, Place
from tests.conformance.wire import delete, set_
from tests.emulator.firestore.receiver import Event, receiving
from tests.emulator.firestore.support import START
from tests.emulator.firestore.world import World
from tests.patience import PATIENCE_SECONDS

FUNCTIONS = "functions.test:8081"


def definition(kind: str, pattern: str, **others: Any) -> dict[str, Any]:
    """The body of the call that registers a trigger, as Google's own tools send it."""
    return {
        "eventType": TYPE_PREFIX + kind,
        "database": "(default)",
        "namespace": "(default)",
        "document": {"value": pattern, "matchType": "PATH_PATTERN"},
    } | others


def register(emulator: FirestoreEmulator, name: str, kind: str, pattern: str, project: str = "p") -> Trigger:
    body = definition(kind, pattern)
    trigger = parse_trigger(project, name, body)
    emulator.triggers.register(trigger, body)
    return trigger


class Functions:
    """A sender that is the receiver too: what it was sent, when, and what it answers, in order (204 in the end)."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, Event]] = []
        self.script: list[int | Exception] = []
        self.stuck: set[str] = set()

    async def __call__(self, call: HttpCall) -> Answered:
        event = Event(call.url.partition(FUNCTIONS)[2], {k.lower(): v for k, v in call.headers.items()}, call.body)
        self.calls.append((round(asyncio.get_running_loop().time(), 3), event))
        if event.trigger in self.stuck:
            await asyncio.get_running_loop().create_future()
        answer = self.script.pop(0) if self.script else 204
        if isinstance(answer, Exception):
            raise answer
        return Answered(answer)

    @property
    def events(self) -> list[Event]:
        return [event for _, event in self.calls]

    def times(self, document: str) -> list[float]:
        return [at for at, event in self.calls if event.document == document]


def run(story: Any, **options: Any) -> None:
    """The story in virtual time, with the network replaced by `Functions`."""

    async def main() -> None:
        functions = Functions()
        world = World(functions=FUNCTIONS, send=functions, **options)
        await world.emulator.start()
        try:
            await story(world, functions)
        finally:
            await world.emulator.stop()

    for seed in range(3):
        virtual_time.run(main(), seed=seed, start=START)


# --- which event, and what it says


def test_each_kind_of_change_causes_its_kind_of_event_and_written_stands_for_all() -> None:
    async def story(world: World, functions: Functions) -> None:
        for kind in ("created", "updated", "deleted", "written"):
            register(world.emulator, kind, kind, "outbox/{id}")
        backend = world.backend
        for change in (
            set_(backend.name("outbox/1"), {"n": 1}),
            set_(backend.name("outbox/1"), {"n": 2}),
            set_(backend.name("outbox/1"), {"n": 2}),  # changes nothing, so it makes no event
            delete(backend.name("outbox/1")),
            delete(backend.name("outbox/1")),
        ):
            await backend.commit(change)
            await asyncio.sleep(1)
        heard = [(at, event.trigger, event.old_value, event.value) for at, event in functions.calls]
        assert sorted(heard, key=lambda one: one[:2]) == [
            (0, "created", None, {"n": 1}),
            (0, "written", None, {"n": 1}),
            (1, "updated", {"n": 1}, {"n": 2}),
            (1, "written", {"n": 1}, {"n": 2}),
            (3, "deleted", {"n": 2}, None),
            (3, "written", {"n": 2}, None),
        ]

    run(story)


def test_an_update_names_the_fields_that_changed() -> None:
    async def story(world: World, functions: Functions) -> None:
        register(world.emulator, "updated", "updated", "c/{id}")
        name = world.backend.name("c/1")
        await world.backend.commit(set_(name, {"same": 1, "changed": 1, "gone": 1, "m": {"a": 1, "b": 1}, "x y": 1}))
        await world.backend.commit(set_(name, {"same": 1, "changed": 2, "new": 1, "m": {"a": 1, "b": 2}, "x y": 2}))
        await asyncio.sleep(1)
        (event,) = functions.events
        assert set(event.data.update_mask.field_paths) == {"`x y`", "changed", "gone", "m", "new"}
        assert event.data.value.name == event.data.old_value.name == name
        assert event.data.value.update_time.ToDatetime() > event.data.old_value.update_time.ToDatetime()
        assert event.data.value.create_time == event.data.old_value.create_time

    run(story)


def test_the_headers_are_those_of_a_binary_cloudevent() -> None:
    async def story(world: World, functions: Functions) -> None:
        register(world.emulator, "on_outbox", "created", "outbox/{id}")
        await world.backend.seed({"outbox/a b%é": {"n": 1}})
        await asyncio.sleep(1)
        (event,) = functions.events
        headers = dict(event.headers)
        moment = datetime.fromisoformat(headers.pop("ce-time"))
        assert moment == event.data.value.update_time.ToDatetime(tzinfo=moment.tzinfo)
        assert headers.pop("ce-id")
        assert headers.pop("ce-dataschema").endswith("firestore/v1/data.proto")
        assert headers == {
            "content-type": "application/protobuf",
            "ce-specversion": "1.0",
            "ce-type": "google.cloud.firestore.document.v1.created",
            "ce-source": "//firestore.googleapis.com/projects/p/databases/(default)",
            "ce-subject": "documents/outbox/a%20b%25%C3%A9",
            "ce-document": "outbox/a%20b%25%C3%A9",
            "ce-datacontenttype": "application/protobuf",
            "ce-project": "p",
            "ce-database": "(default)",
            "ce-namespace": "(default)",
            "ce-location": "local",
        }
        assert event.path == "/functions/projects/p/triggers/on_outbox"

    run(story)


def test_each_event_has_an_id_of_its_own_that_stays_over_retries() -> None:
    async def story(world: World, functions: Functions) -> None:
        register(world.emulator, "t", "written", "c/{id}")
        functions.script = [500, 500]
        await world.backend.seed({"c/1": {}, "c/2": {}})
        await asyncio.sleep(10)
        ids = {(event.document, event.headers["ce-id"]) for event in functions.events}
        assert len(functions.events) == 4
        assert len(ids) == 2

    run(story)


PATTERNS: dict[tuple[str, str], bool] = {
    ("outbox/{id}", "outbox/1"): True,
    ("/outbox/{id}/", "outbox/1"): True,
    ("outbox/{id}", "outbox/1/parts/2"): False,
    ("outbox/{id}", "inbox/1"): False,
    ("outbox/{id}", "xoutbox/1"): False,
    ("outbox/1", "outbox/1"): True,
    ("outbox/1", "outbox/10"): False,
    ("outbox/{id}", "outbox/a.b c\n"): True,
    ("threads/{t}/messages/{m}", "threads/1/messages/2"): True,
    ("threads/{t}/messages/{m}", "threads/1/notes/2"): False,
    ("threads/7/messages/{m}", "threads/8/messages/2"): False,
    ("{collection}/{id}", "outbox/1"): True,
    ("threads/{rest=**}", "threads/1"): True,
    ("threads/{rest=**}", "threads/1/messages/2"): True,
    ("threads/{rest=**}", "threads/1/messages/a\nb"): True,
    ("threads/{rest=**}", "outbox/1"): False,
    ("a.c/{id}", "abc/1"): False,
    ("a+/{id}", "a+/1"): True,
}


@pytest.mark.parametrize(("pattern", "path"), PATTERNS)
def test_a_pattern_matches_whole_paths_and_a_wildcard_whole_ids(pattern: str, path: str) -> None:
    async def story(world: World, functions: Functions) -> None:
        register(world.emulator, "t", "created", pattern)
        await world.backend.seed({path: {}})
        await asyncio.sleep(1)
        assert bool(functions.events) is PATTERNS[pattern, path]

    run(story)


def test_a_trigger_of_another_project_hears_nothing() -> None:
    async def story(world: World, functions: Functions) -> None:
        register(world.emulator, "other", "created", "c/{id}", project="q")
        await world.backend.seed({"c/1": {}})
        await asyncio.sleep(1)
        assert functions.events == []

    run(story)


def test_a_trigger_registered_again_takes_the_place_of_the_first() -> None:
    async def story(world: World, functions: Functions) -> None:
        register(world.emulator, "t", "created", "c/{id}")
        register(world.emulator, "t", "created", "d/{id}")
        await world.backend.seed({"c/1": {}, "d/1": {}})
        await asyncio.sleep(1)
        assert [event.document for event in functions.events] == ["d/1"]

    run(story)


def test_a_commit_that_is_refused_causes_no_event() -> None:
    async def story(world: World, functions: Functions) -> None:
        register(world.emulator, "t", "written", "c/{id}")
        refused = world.start(
            "commit",
            world.backend.commit(set_(world.backend.name("c/1"), {}), set_(world.backend.name("c/2"), {}, exists=True)),
        )
        await refused
        await asyncio.sleep(10)
        assert world.log == ["commit NOT_FOUND at 0"]
        assert functions.events == []

    run(story)


# --- delivery


def test_an_event_is_sent_until_it_is_taken_with_pauses_that_double_up_to_a_minute() -> None:
    async def story(world: World, functions: Functions) -> None:
        register(world.emulator, "t", "created", "c/{id}")
        functions.script = [500, OSError("connection refused"), 503, 404, 302, 429, 500, 500, 500]
        await world.backend.seed({"c/1": {}})
        await asyncio.sleep(3600)
        assert functions.times("c/1") == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]
        assert world.emulator.engine.storage.database.rows("SELECT * FROM events") == []

    run(story)


def test_a_receiver_that_never_answers_is_tried_again_after_its_minute() -> None:
    async def story(world: World, functions: Functions) -> None:
        register(world.emulator, "slow", "created", "c/{id}")
        functions.stuck = {"slow"}
        await world.backend.seed({"c/1": {}})
        await asyncio.sleep(100)
        functions.stuck = set()
        await asyncio.sleep(100)
        assert functions.times("c/1") == [0, 61, 123]

    run(story)


def test_an_event_that_no_receiver_takes_is_given_up_after_a_day() -> None:
    async def story(world: World, functions: Functions) -> None:
        register(world.emulator, "t", "created", "c/{id}")
        functions.script = [500] * 2000
        await world.backend.seed({"c/1": {}})
        await asyncio.sleep(2 * 86_400)
        assert 86_400 <= functions.times("c/1")[-1] <= 86_400 + 60
        assert world.emulator.engine.storage.database.rows("SELECT * FROM events") == []

    run(story)


def test_a_stuck_receiver_holds_up_no_other_trigger_however_many_events_it_sits_on() -> None:
    async def story(world: World, functions: Functions) -> None:
        register(world.emulator, "stuck", "created", "c/{id}")
        register(world.emulator, "fine", "created", "d/{id}")
        functions.stuck = {"stuck"}
        await world.backend.seed({f"c/{number}": {} for number in range(200)})
        await world.backend.seed({"d/1": {}})
        await asyncio.sleep(0.1)
        assert functions.times("d/1") == [0]

    run(story)


def test_events_of_one_trigger_are_sent_beside_each_other_but_not_all_at_once() -> None:
    async def story(world: World, functions: Functions) -> None:
        register(world.emulator, "stuck", "created", "c/{id}")
        functions.stuck = {"stuck"}
        await world.backend.seed({f"c/{number}": {} for number in range(200)})
        await asyncio.sleep(0.1)
        assert 2 <= len(functions.events) <= 64

    run(story)


def test_one_that_waits_for_its_next_try_does_not_hold_up_the_others_of_its_trigger() -> None:
    async def story(world: World, functions: Functions) -> None:
        register(world.emulator, "t", "created", "c/{id}")
        functions.script = [500] * 100
        await world.backend.seed({f"c/{number}": {} for number in range(100)})
        await world.backend.seed({"c/late": {}})
        await asyncio.sleep(0.5)
        assert functions.times("c/late") == [0]

    run(story)


def test_clearing_the_database_tells_of_each_document_that_is_gone() -> None:
    async def story(world: World, functions: Functions) -> None:
        register(world.emulator, "t", "deleted", "c/{id}")
        await world.backend.seed({"c/1": {"n": 1}, "c/2": {"n": 2}, "d/1": {}})
        world.emulator.engine.clear(world.backend.database)
        await asyncio.sleep(1)
        assert sorted((event.document, event.old_value) for event in functions.events) == [
            ("c/1", {"n": 1}),
            ("c/2", {"n": 2}),
        ]

    run(story)


def test_what_was_not_taken_before_a_restart_is_sent_after_it_and_the_trigger_is_still_there(tmp_path: Any) -> None:
    async def main() -> None:
        first, second = Functions(), Functions()
        world = World(functions=FUNCTIONS, send=first, data=tmp_path)
        await world.emulator.start()
        register(world.emulator, "t", "created", "c/{id}")
        first.script = [500]
        await world.backend.seed({"c/1": {"n": 1}})
        await asyncio.sleep(0.5)
        await world.emulator.stop()
        world = World(functions=FUNCTIONS, send=second, data=tmp_path)
        await world.emulator.start()
        await asyncio.sleep(0.5)
        await world.backend.seed({"c/2": {"n": 2}})
        await asyncio.sleep(0.5)
        assert [(event.document, event.value) for event in second.events] == [("c/1", {"n": 1}), ("c/2", {"n": 2})]
        assert second.events[0].headers["ce-id"] == first.events[0].headers["ce-id"]
        await world.emulator.stop()

    virtual_time.run(main(), seed=1, start=START)


# --- over real sockets


@asynccontextmanager
async def serving(functions: str) -> AsyncIterator[tuple[Backend, httpx.AsyncClient]]:
    emulator = FirestoreEmulator(functions=functions)
    await emulator.start()
    server = await Server.start(emulator.service, http=emulator.http_app)
    async with (
        aio.insecure_channel(server.address) as channel,
        httpx.AsyncClient(base_url=f"http://{server.address}", trust_env=False, timeout=PATIENCE_SECONDS) as client,
    ):
        yield Backend(Place("grpc", channel, server.address), project="p"), client
    await server.stop(grace_seconds=0)
    await emulator.stop()


async def test_a_trigger_registered_over_http_gets_events_over_http_with_the_raw_payload() -> None:
    async with receiving() as receiver, serving(receiver.address) as (backend, client):
        url = "/emulator/v1/projects/p/eventarcTrigger?eventarcTriggerId=on%20outbox/1"
        answer = await client.post(url, json=definition("created", "outbox/{id}"))
        assert answer.status_code == 200
        await backend.seed({"outbox/1": {"to": "a"}})
        (event,) = await receiver.until(lambda events: len(events) == 1)
        assert event.path == "/functions/projects/p/triggers/on%20outbox%2F1"
        assert event.headers["content-type"] == "application/protobuf"
        assert event.headers["ce-type"] == "google.cloud.firestore.document.v1.created"
        assert event.value == {"to": "a"}
        assert event.old_value is None


async def test_a_receiver_that_hangs_does_not_hold_up_another_over_sockets() -> None:
    async with receiving() as receiver, serving(receiver.address) as (backend, client):
        release = asyncio.Event()

        async def answer(event: Event) -> int:
            if event.trigger == "stuck":
                await release.wait()
            return 204

        receiver.answer = answer
        for name, pattern in (("stuck", "c/{id}"), ("fine", "d/{id}")):
            url = f"/emulator/v1/projects/p/eventarcTrigger?eventarcTriggerId={name}"
            assert (await client.post(url, json=definition("created", pattern))).status_code == 200
        await backend.seed({f"c/{number}": {} for number in range(40)})
        await backend.seed({"d/1": {}})
        await receiver.until(lambda events: "d/1" in [event.document for event in events])
        release.set()
        await receiver.until(lambda events: len(events) == 41)


BAD_REGISTRATIONS: dict[str, tuple[str, Any, str]] = {
    "no JSON": ("?eventarcTriggerId=t", b"{", "not JSON"),
    "no text": ("?eventarcTriggerId=t", b"\xff\xfe", "not JSON"),
    "no object": ("?eventarcTriggerId=t", b"[]", "must be a JSON object"),
    "no name": ("", definition("created", "c/{id}"), "eventarcTriggerId"),
    "no event type": ("?eventarcTriggerId=t", {"document": {"value": "c/{id}"}}, "eventType must be one of"),
    "an unknown event type": (
        "?eventarcTriggerId=t",
        definition("created", "c/{id}", eventType="google.cloud.pubsub.topic.v1.messagePublished"),
        "eventType must be one of",
    ),
    "an event type that is a list": (
        "?eventarcTriggerId=t",
        definition("created", "c/{id}", eventType=[]),
        "eventType must be one of",
    ),
    "no pattern": ("?eventarcTriggerId=t", definition("created", "", document={}), "document.value"),
    "an empty pattern": ("?eventarcTriggerId=t", definition("created", "/"), "document.value"),
    "a pattern that is no text": (
        "?eventarcTriggerId=t",
        definition("created", "", document={"value": 5}),
        "document.value",
    ),
    "a database that is no text": ("?eventarcTriggerId=t", definition("created", "c/{id}", database=7), "database"),
}


async def test_a_bad_registration_is_refused_with_words_and_changes_nothing() -> None:
    async with receiving() as receiver, serving(receiver.address) as (backend, client):
        for case, (parameters, body, words) in BAD_REGISTRATIONS.items():
            content = {"content": body} if isinstance(body, bytes) else {"json": body}
            answer = await client.post("/emulator/v1/projects/p/eventarcTrigger" + parameters, **content)
            assert answer.status_code == 400, case
            assert words in answer.json()["error"]["message"], case
        assert (await client.get("/emulator/v1/projects/p/eventarcTrigger")).status_code == 404
        register_url = "/emulator/v1/projects/p/eventarcTrigger?eventarcTriggerId=last"
        await client.post(register_url, json=definition("created", "c/last"))
        await backend.seed({"c/1": {}, "c/last": {}})
        await receiver.until(bool)
        assert [event.document for event in receiver.events] == ["c/last"]
