"""Cases: devices on which members want notifications. Each member has their own, and sees no other."""

from __future__ import annotations

from typing import Any

from google.cloud.firestore import SERVER_TIMESTAMP, AsyncClient
from google.cloud.firestore_v1.base_query import FieldFilter

from tests.rules.actions import Act, Case, delete, find, get, update
from tests.rules.people import AGENT, COLLEAGUE, GUEST, NEWCOMER, OWNER, ROLELESS, SIGNED_OUT, STRANGER, VIEWER
from tests.rules.scene import LONG_AGO, Scene


def register(device_id: str = "device-1", **changed: Any) -> Act:
    """A good device, with something changed; None takes a field away."""

    async def act(scene: Scene, client: AsyncClient, uid: str | None) -> None:
        fields = {
            "uid": uid or "signed-out",
            "token": "t" * 163,
            "platform": "web",
            "createdAt": SERVER_TIMESTAMP,
            **changed,
        }
        kept = {name: value for name, value in fields.items() if value is not None}
        await client.document(f"accounts/{scene.account}/devices/{device_id}").set(kept)

    return act


def agents(scene: Scene) -> str:
    return f"accounts/{scene.account}/devices/device-of-agent"


def missing(scene: Scene) -> str:
    return f"accounts/{scene.account}/devices/device-1"


def _of(uid: str) -> Act:
    def query(scene: Scene, client: AsyncClient) -> Any:
        devices = client.collection(f"accounts/{scene.account}/devices")
        return devices.where(filter=FieldFilter("uid", "==", uid))

    return find(query)


_ALL = find(lambda scene, client: client.collection(f"accounts/{scene.account}/devices"))

BAD: dict[str, Act] = {
    "with an id that is too short": register("device"),
    "with a field more": register(role="owner"),
    "without a token": register(token=None),
    "with an empty token": register(token=""),
    "with a token that is no text": register(token=7),
    "with a token that is too long": register(token="t" * 4097),
    "with an empty platform": register(platform=""),
    "with a platform that is too long": register(platform="p" * 33),
    "with a platform that is no text": register(platform=7),
    "without a time": register(createdAt=None),
    "with a time of its own": register(createdAt=LONG_AGO),
    "of a colleague": register(uid=COLLEAGUE),
    "without an owner": register(uid=None),
}

CASES = [
    *(
        Case(f"{who} registers a device", person, register(), allowed=True)
        for who, person in {"an owner": OWNER, "an agent": AGENT, "a viewer": VIEWER}.items()
    ),
    *(
        Case(f"{who} does not register a device", person, register(), allowed=False)
        for who, person in {
            "a member of another account": STRANGER,
            "a user with no account": NEWCOMER,
            "a member with an unknown role": GUEST,
            "a member without a role": ROLELESS,
            "a signed-out user": SIGNED_OUT,
        }.items()
    ),
    Case("an agent registers a device without a platform", AGENT, register(platform=None), allowed=True),
    Case("an agent registers a device with the longest token", AGENT, register(token="t" * 4096), allowed=True),
    Case("an agent registers a device with the longest platform", AGENT, register(platform="p" * 32), allowed=True),
    *(Case(f"an agent does not register a device {how}", AGENT, act, allowed=False) for how, act in BAD.items()),
    Case("an agent does not register a device again", AGENT, register("device-of-agent"), allowed=False),
    Case("an agent does not change the token of a device", AGENT, update(agents, token="another"), allowed=False),
    Case("an agent reads their own device", AGENT, get(agents), allowed=True),
    Case("an agent lists their own devices", AGENT, _of(AGENT), allowed=True),
    Case("an agent does not list the devices of the account", AGENT, _ALL, allowed=False),
    Case("an agent removes their own device", AGENT, delete(agents), allowed=True),
    Case("an agent does not remove a device that is not there", AGENT, delete(missing), allowed=False),
    *(
        Case(f"{who} does not {verb} a device of an agent", person, act, allowed=False)
        for who, person in {"an owner": OWNER, "a colleague": COLLEAGUE, "a signed-out user": SIGNED_OUT}.items()
        for verb, act in {"read": get(agents), "find": _of(AGENT), "remove": delete(agents)}.items()
    ),
]
