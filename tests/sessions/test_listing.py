"""The hot set as it is shown: by state and use, the queue in its order; and as a gauge."""

from __future__ import annotations

import re
from datetime import timedelta

from firestore_outbox import metrics
from firestore_outbox.sessions.listing import counted, listed
from firestore_outbox.sessions.states import State
from tests.builders import NOW
from tests.sessions.builders import RULES, entry, hotset, idle, sticky, used, waiting


def test_slots_come_by_name_and_then_the_queue_in_its_order() -> None:
    line = {"late": waiting(9), "first": waiting(1), "seat": waiting(0, is_sticky=True, left=timedelta(hours=1))}
    hot = hotset(line, b=used(), a=idle(), c=sticky(timedelta(hours=2)), d=entry(State.DISCONNECTING))
    slots = listed("default", hot, NOW, RULES)
    assert [(row.account_id, row.state, row.use) for row in slots.rows] == [
        ("a", "hot", "warm"),
        ("b", "hot", "in use"),
        ("c", "hot", "sticky"),
        ("d", "disconnecting", ""),
        ("first", "waiting", "due"),
        ("late", "waiting", "due"),
        ("seat", "waiting", "sticky"),
    ]
    assert (slots.total, slots.free) == (RULES.slots, 0)


def test_the_gauge_has_every_state_also_when_it_is_empty() -> None:
    assert counted(hotset()) == {"connecting": 0, "hot": 0, "disconnecting": 0, "waiting": 0}
    metrics.sessions("gauged.1", counted(hotset({"x": waiting()}, a=used())))
    shown = metrics.as_text().decode()
    counts = re.findall(
        r'^outbox_sessions\{.*set="gauged.1".*state="(hot|waiting)".*\} ([0-9.]+)$', shown, re.MULTILINE
    )
    assert dict(counts) == {"hot": "1.0", "waiting": "1.0"}
