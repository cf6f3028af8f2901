"""Variables of targets: in the text that each one gets, and checked before a run starts."""

from __future__ import annotations

from typing import Any

import pytest

from firestore_outbox.firestore.writes import create
from firestore_outbox.messages import faults
from firestore_outbox.reminders.add import Added
from firestore_outbox.reminders.check import Faulty, NewReminder
from firestore_outbox.reminders.variables import filled, placeholders
from tests.calm import START, Calm, simulate
from tests.reminders.support import only_run, remind, runs, until_ended

HELLO: list[dict[str, Any]] = [{"type": "text", "text": "Hello {name}, see you in {city}!"}]
OFFER = {
    "type": "template",
    "name": "offer",
    "language": "en",
    "params": {"header": {"image": "https://example.com/{city}.png"}, "buttons": ["{name}"]},
}
ANN = {"id": "ann", "to": "+491511", "variables": {"name": "Ann", "city": "Berlin"}}
BOB = {"id": "bob", "to": "+491512", "variables": {"name": "Bob"}}


def new(*targets: Any, **fields: Any) -> NewReminder:
    given = {
        "accountId": "shop",
        "parts": HELLO,
        "timezone": "UTC",
        "schedule": {"type": "once", "at": START},
        **fields,
    }
    return NewReminder(
        reminder_id="rem", fields={**given, "window": {"startHour": 0, "endHour": 24}}, targets=targets, created_by="u"
    )


def texts(calm: Calm) -> dict[str, list[Any]]:
    return {one["targetId"]: one["parts"] for one in calm.world.truth.collection("outbox").values()}


def test_each_target_gets_its_own_values_in_text_caption_and_parameters() -> None:
    parts: list[dict[str, Any]] = [
        *HELLO,
        {"type": "media", "mediaId": "m-{name}", "mimeType": "image/png", "caption": "{city}"},
        {"type": "template", "name": "{name}", "language": "en", "params": ["{name}", "x"]},
        OFFER,
    ]
    assert placeholders(parts) == ("name", "city")
    assert filled(parts, {"name": "Ann", "city": "Berlin"}) == [
        {"type": "text", "text": "Hello Ann, see you in Berlin!"},
        {"type": "media", "mediaId": "m-{name}", "mimeType": "image/png", "caption": "Berlin"},
        {"type": "template", "name": "{name}", "language": "en", "params": ["Ann", "x"]},
        {**OFFER, "params": {"header": {"image": "https://example.com/Berlin.png"}, "buttons": ["Ann"]}},
    ]


def test_a_value_is_not_looked_at_for_placeholders() -> None:
    assert filled(HELLO[:1], {"name": "{city}", "city": "Berlin"})[0]["text"] == "Hello {city}, see you in Berlin!"


def test_a_run_sends_each_target_its_own_text() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        there = {**BOB, "variables": {"name": "Bob", "city": "Rome"}}
        assert isinstance(await calm.world.client.system.remind(new(ANN, there)), Added)
        await until_ended(calm)
        assert only_run(calm)["status"] == "success"
        assert texts(calm)["ann"] == [{"type": "text", "text": "Hello Ann, see you in Berlin!"}]
        assert texts(calm)["bob"] == [{"type": "text", "text": "Hello Bob, see you in Rome!"}]
        shown = [data for path, data in calm.world.truth.latest().items() if "__+491511/messages/" in path]
        assert shown[0]["parts"] == texts(calm)["ann"]

    simulate(body)


def test_a_run_fills_the_header_and_the_buttons_of_a_template() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        assert isinstance(await calm.world.client.system.remind(new(ANN, parts=[OFFER])), Added)
        await until_ended(calm)
        (sent,) = texts(calm)["ann"]
        assert sent["params"] == {"header": {"image": "https://example.com/Berlin.png"}, "buttons": ["Ann"]}
        assert only_run(calm)["counts"]["sent"] == 1

    simulate(body)


def test_a_variable_that_is_missing_in_a_templates_header_names_the_target() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        refused = await calm.world.client.system.remind(new(BOB, parts=[OFFER]))
        assert isinstance(refused, Faulty)
        assert refused.sentences == ("targets[0] (bob): the variable city is missing; the message has {city}.",)

    simulate(body)


@pytest.mark.parametrize("chunked", [False, True], ids=["in the reminder", "in documents of targets"])
def test_a_bad_target_is_skipped_with_its_reason_and_the_others_are_sent(chunked: bool) -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        listed: list[Any] = ["1@g.us", {"id": "bad", "to": "with blank"}, 7, {"id": "also", "to": "2@g.us"}]
        if chunked:
            await calm.write(create("reminders/rem/targets/000000", {"targets": listed}))
            await remind(calm, targets=0)
        else:
            await remind(calm, listed=[*listed, "1@g.us"])
        await until_ended(calm)
        counts = only_run(calm)["counts"]
        skipped = {
            one["targetId"]: (one["lastError"]["code"], one["lastError"]["message"])
            for one in calm.world.truth.collection("outbox").values()
            if one["status"] == "skipped"
        }
        assert (counts["sent"], counts["skipped"], counts["total"]) == (2, len(skipped), 2 + len(skipped))
        assert skipped["bad"] == ("invalid_message", f"targets[1].to {faults.ADDRESS}")
        assert any("targets[2] is 7" in sentence for _, sentence in skipped.values())
        assert chunked or "is there twice" in skipped["targets[4]"][1]

    simulate(body)


def test_a_missing_variable_names_the_target_before_anything_is_stored() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        refused = await calm.world.client.system.remind(new(ANN, BOB))
        assert isinstance(refused, Faulty)
        assert refused.sentences == ("targets[1] (bob): the variable city is missing; the message has {city}.",)
        assert calm.world.truth.collection("reminders") == {}

    simulate(body)


def test_a_reminder_of_a_client_with_a_missing_variable_does_not_fire_and_says_which() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        fields = {**new().fields, "targets": [ANN, BOB], "status": "active", "createdAt": START, "createdBy": "ann"}
        await calm.write(create("reminders/rem", fields))
        await calm.until(lambda: "problem" in calm.document("reminders/rem"))
        assert calm.document("reminders/rem")["problem"].startswith("targets[1] (bob): the variable city is missing")
        assert runs(calm) == {}

    simulate(body)


def test_without_variables_braces_are_sent_as_they_are_written() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await remind(calm, targets=1, parts=HELLO)
        await until_ended(calm)
        assert list(texts(calm).values()) == [HELLO]

    simulate(body)


def test_in_documents_of_targets_one_without_a_value_is_skipped_with_its_reason() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await calm.write(create("reminders/rem/targets/000000", {"targets": [ANN, BOB]}))
        await remind(calm, targets=0, parts=HELLO, personal=True)
        await until_ended(calm)
        run = only_run(calm)
        assert (run["counts"]["sent"], run["counts"]["skipped"], run["counts"]["total"]) == (1, 1, 2)
        (skipped,) = [one for one in calm.world.truth.collection("outbox").values() if one["status"] == "skipped"]
        assert skipped["lastError"]["message"] == "the target bob has no value for the variable city"

    simulate(body)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"first name": "Ann"}, "targets[0].variables has the name 'first name'"),
        ({"name": 7}, "targets[0].variables.name must be a text"),
        ({f"v{n}": "x" for n in range(21)}, "targets[0].variables"),
        ({"name": "x" * 1025}, "has 1,025 characters"),
    ],
)
def test_variables_that_cannot_be_are_refused_in_words(variables: dict[str, Any], words: str) -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        refused = await calm.world.client.system.remind(new({**ANN, "variables": variables}))
        assert isinstance(refused, Faulty)
        assert words in " ".join(refused.sentences)

    simulate(body)
