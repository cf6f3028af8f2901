"""Cases: a reminder that a client adds, and what members ask of runs and reminders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.cloud.firestore import DELETE_FIELD, SERVER_TIMESTAMP, AsyncClient

from tests.rules.actions import Act, Case, delete, find, get, update
from tests.rules.people import AGENT, GUEST, NEWCOMER, OWNER, ROLELESS, SIGNED_OUT, STRANGER, VIEWER
from tests.rules.scene import LONG_AGO, NEW_CONTACT, TEXT, Scene

Parent = Callable[[Scene], str]
REFUSED_EVERYWHERE = {
    "a viewer": VIEWER,
    "a member of another account": STRANGER,
    "a user with no account": NEWCOMER,
    "a member with an unknown role": GUEST,
    "a member without a role": ROLELESS,
    "a signed-out user": SIGNED_OUT,
}


def add(reminder_id: Callable[[Scene], str] = lambda scene: scene.key, **changed: Any) -> Act:
    """A good reminder, with something changed; None takes a field away."""

    async def act(scene: Scene, client: AsyncClient, uid: str | None) -> None:
        fields = {
            "accountId": scene.account,
            "parts": [TEXT],
            "targets": [{"id": "one", "to": NEW_CONTACT}],
            "timezone": "Europe/Berlin",
            "window": {"startHour": 6, "endHour": 18},
            "schedule": {"type": "cron", "cron": "0 9 * * *"},
            "onWindowEnd": "stop",
            "missed": "skip",
            "status": "active",
            "createdAt": SERVER_TIMESTAMP,
            "createdBy": uid or "signed-out",
            **changed,
        }
        kept = {name: value for name, value in fields.items() if value is not None}
        await client.document(f"reminders/{reminder_id(scene)}").set(kept)

    return act


def run_of(scene: Scene) -> str:
    return f"runs/{scene.account}"


def reminder_of(scene: Scene) -> str:
    return f"reminders/{scene.account}"


def ask(parent: Parent, action: Any, *, request_id: str = "request-1", **changed: Any) -> Act:
    async def act(scene: Scene, client: AsyncClient, uid: str | None) -> None:
        fields = {
            "action": action,
            "createdBy": uid or "signed-out",
            "createdAt": SERVER_TIMESTAMP,
            "askedAt": LONG_AGO,
            **changed,
        }
        kept = {name: value for name, value in fields.items() if value is not None}
        await client.document(f"{parent(scene)}/requests/{request_id}").set(kept)

    return act


def _twice(scene: Scene, client: AsyncClient, uid: str | None) -> Any:
    async def act() -> None:
        await ask(run_of, "pause")(scene, client, uid)
        await ask(run_of, "cancel")(scene, client, uid)

    return act()


BAD_REMINDERS: dict[str, Act] = {
    "with a name of another form": add(lambda scene: f"_{scene.key}"),
    "with an unknown field": add(color="red"),
    "with a field of the worker": add(lastRunId="r"),
    "of an account with two underscores": add(accountId="a__b"),
    "that is paused": add(status="paused"),
    "in the name of a colleague": add(createdBy=OWNER),
    "with a time of the client's": add(createdAt=LONG_AGO),
    "without parts": add(parts=[]),
    "with parts that are no list": add(parts={"a": TEXT}),
    "with eleven parts": add(parts=[TEXT] * 11),
    "without targets": add(targets=[]),
    "with targets that are no list": add(targets={"a": "b"}),
    "with 5,001 targets": add(targets=["1@g.us"] * 5_001),
    "without a time zone": add(timezone=None),
    "with a time zone that is a number": add(timezone=1),
    "without a schedule": add(schedule=None),
    "with a schedule of another type": add(schedule={"type": "never"}),
}

BAD_REQUESTS: dict[str, Act] = {
    "under a short id": ask(run_of, "pause", request_id="short"),
    "with an unknown field": ask(run_of, "pause", color="red"),
    "with an outcome": ask(run_of, "pause", outcome="applied"),
    "in the name of a colleague": ask(run_of, "pause", createdBy=AGENT),
    "with a time of the client's": ask(run_of, "pause", createdAt=LONG_AGO),
    "without the time at which it was asked": ask(run_of, "pause", askedAt=None),
    "with a number for that time": ask(run_of, "pause", askedAt=1),
    "for something else": ask(run_of, "explode"),
    "to edit a run": ask(run_of, "edit", changes={}),
    "with changes of a run": ask(run_of, "pause", changes={}),
    "of a run that is not there": ask(lambda scene: f"runs/{scene.key}", "pause"),
    "of a run of another account": ask(lambda scene: f"runs/{scene.other_account}", "pause"),
    "a reminder with an unknown field": ask(reminder_of, "pause", color="red"),
    "to cancel a reminder": ask(reminder_of, "cancel"),
    "to edit without changes": ask(reminder_of, "edit"),
    "to pause with changes": ask(reminder_of, "pause", changes={"missed": "skip"}),
    "of a reminder that is not there": ask(lambda scene: f"reminders/{scene.key}", "pause"),
    "of a reminder of another account": ask(lambda scene: f"reminders/{scene.other_account}", "pause"),
    "and another under the same id": _twice,
}

MEMBERS = {"an owner": OWNER, "an agent": AGENT}
EDIT = {"missed": "runOnce"}


def _asked(parent: Parent) -> Callable[[Scene], str]:
    return lambda scene: f"{parent(scene)}/requests/request-0"


CASES = [
    *(Case(f"{who} adds a reminder", uid, add(), allowed=True) for who, uid in MEMBERS.items()),
    *(Case(f"{who} does not add a reminder", uid, add(), allowed=False) for who, uid in REFUSED_EVERYWHERE.items()),
    Case("a reminder may leave out what has a default", AGENT, add(window=None, onWindowEnd=None, missed=None), True),
    Case("a reminder may say that it is marketing", AGENT, add(category="marketing"), True),
    *(Case(f"an agent does not add a reminder {how}", AGENT, act, False) for how, act in BAD_REMINDERS.items()),
    Case(
        "an agent asks for a reminder that is not there yet",
        AGENT,
        get(lambda scene: f"reminders/{scene.key}"),
        allowed=True,
    ),
    Case(
        "a signed-out user asks for no reminder", SIGNED_OUT, get(lambda scene: f"reminders/{scene.key}"), allowed=False
    ),
    Case(
        "an owner does not change a reminder in place",
        OWNER,
        update(reminder_of, status="paused"),
        allowed=False,
    ),
    *(
        Case(f"an owner asks a run to {action}", OWNER, ask(run_of, action), allowed=True)
        for action in ("pause", "resume", "cancel", "retryFailed")
    ),
    *(
        Case(f"an agent does not ask a run to {action}", AGENT, ask(run_of, action), allowed=False)
        for action in ("pause", "resume", "cancel")
    ),
    Case("an agent asks a run to try again what failed", AGENT, ask(run_of, "retryFailed"), allowed=True),
    *(
        Case(f"{who} asks a reminder to {action}", uid, ask(reminder_of, action), allowed=True)
        for who, uid in MEMBERS.items()
        for action in ("pause", "resume", "remove")
    ),
    *(
        Case(f"{who} edits a reminder", uid, ask(reminder_of, "edit", changes=EDIT), True)
        for who, uid in MEMBERS.items()
    ),
    *(
        Case(f"{who} does not ask {what}", uid, ask(parent, "pause"), allowed=False)
        for who, uid in REFUSED_EVERYWHERE.items()
        for what, parent in (("a run to pause", run_of), ("a reminder to pause", reminder_of))
    ),
    Case("a viewer does not try again what failed", VIEWER, ask(run_of, "retryFailed"), allowed=False),
    *(Case(f"an owner does not ask {how}", OWNER, act, allowed=False) for how, act in BAD_REQUESTS.items()),
    *(
        Case(f"{who} looks at what was asked of {what}", uid, act, allowed=allowed)
        for who, uid, allowed in (
            ("a viewer", VIEWER, True),
            ("a member with an unknown role", GUEST, False),
            ("a member of another account", STRANGER, False),
        )
        for what, act in (
            ("a run", get(_asked(run_of))),
            ("a reminder", get(_asked(reminder_of))),
            ("a run, all of it", find(lambda scene, client: client.collection(f"{run_of(scene)}/requests"))),
            ("a reminder, all of it", find(lambda scene, client: client.collection(f"{reminder_of(scene)}/requests"))),
        )
    ),
    *(
        Case(f"an owner does not {what} a request of {whom}", OWNER, act, allowed=False)
        for whom, parent in (("a run", run_of), ("a reminder", reminder_of))
        for what, act in (
            ("change", update(_asked(parent), action="cancel")),
            ("take a field from", update(_asked(parent), askedAt=DELETE_FIELD)),
            ("delete", delete(_asked(parent))),
        )
    ),
]
