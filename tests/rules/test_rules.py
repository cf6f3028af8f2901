"""Who may do what, on Google's emulator: each case is a person, an action, and whether it is allowed."""

from __future__ import annotations

import pytest
from google.api_core.exceptions import PermissionDenied
from google.cloud.firestore import SERVER_TIMESTAMP
from google.cloud.firestore_v1.base_query import FieldFilter

from firestore_outbox.firestore.writes import SERVER_TIME
from firestore_outbox.messages.enqueue import NewMessage, batch
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.validation import parse_message
from tests.rules import changing, devices, fan_out, parts_of_messages, reading, sending, threads
from tests.rules.actions import Case, in_message, send
from tests.rules.guarded import GuardedProject
from tests.rules.people import AGENT
from tests.rules.scene import NEW_CONTACT, TEXT, Draft

CASES = [
    *reading.CASES,
    *sending.CASES,
    *parts_of_messages.CASES,
    *threads.CASES,
    *changing.CASES,
    *fan_out.CASES,
    *devices.CASES,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_the_rules_allow_and_refuse(guarded: GuardedProject, case: Case) -> None:
    assert await guarded.is_allowed(case) is case.allowed


SENT = [case for case in [*sending.CASES, *parts_of_messages.CASES] if case.allowed]


@pytest.mark.parametrize("case", SENT, ids=lambda case: case.name)
async def test_what_the_rules_let_through_the_worker_can_send(guarded: GuardedProject, case: Case) -> None:
    scene = await guarded.scene()
    await case.act(scene, guarded.people.client_of(case.who), case.who)

    server = guarded.people.server_side()
    of_account = server.collection("outbox").where(filter=FieldFilter("accountId", "==", scene.account))
    new = [one for one in await of_account.get() if f"outbox/{one.id}" not in scene.documents()]
    assert new
    for document in new:
        assert isinstance(parse_message(document.id, document.to_dict()), OutboxMessage)


async def test_what_the_worker_writes_for_a_client_a_client_may_write(guarded: GuardedProject) -> None:
    scene = await guarded.scene()
    new = NewMessage(
        request_id=scene.request_id, account_id=scene.account, to=NEW_CONTACT, parts=[TEXT], created_by=AGENT
    )
    client = guarded.people.client_of(AGENT)
    writes = client.batch()
    for one in batch(new):
        fields = {name: SERVER_TIMESTAMP if value is SERVER_TIME else value for name, value in one.fields.items()}
        writes.set(client.document(one.path), fields, merge=True)
    await writes.commit()


def test_every_case_says_something_else() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


async def test_a_message_that_is_refused_leaves_nothing_behind(guarded: GuardedProject) -> None:
    scene = await guarded.scene()
    with pytest.raises(PermissionDenied):
        await send(in_message(status="sent"))(scene, guarded.people.client_of(AGENT), AGENT)

    server = guarded.people.server_side()
    for path in Draft.of(scene.request_id, scene.account, NEW_CONTACT, AGENT).paths.values():
        assert not (await server.document(path).get()).exists


async def test_the_same_batch_twice_changes_nothing_and_the_client_can_see_why(guarded: GuardedProject) -> None:
    scene = await guarded.scene()
    client = guarded.people.client_of(AGENT)
    await send()(scene, client, AGENT)
    paths = Draft.of(scene.request_id, scene.account, NEW_CONTACT, AGENT).paths.values()
    before = [await client.document(path).get() for path in paths]

    with pytest.raises(PermissionDenied):
        await send()(scene, client, AGENT)

    after = [await client.document(path).get() for path in paths]
    assert [one.update_time for one in after] == [one.update_time for one in before]
    assert after[2].get("status") == "queued"
