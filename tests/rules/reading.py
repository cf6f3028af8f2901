"""Cases: who may read what, and which queries can be proven."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.base_query import FieldFilter

from tests.rules.actions import Act, Case, find, get
from tests.rules.people import AGENT, GUEST, NEWCOMER, OWNER, ROLELESS, SIGNED_OUT, STRANGER, VIEWER
from tests.rules.scene import NEW_CONTACT, OLD_CONTACT, Scene

WITHOUT_A_ROLE = {
    "a member of another account": STRANGER,
    "a user with no account": NEWCOMER,
    "a member with an unknown role": GUEST,
    "a member without a role": ROLELESS,
    "a signed-out user": SIGNED_OUT,
}
WITH_A_ROLE = {"an owner": OWNER, "an agent": AGENT, "a viewer": VIEWER}


def of(account: Callable[[Scene], str], collection: str) -> Callable[[Scene, AsyncClient], Any]:
    def query(scene: Scene, client: AsyncClient) -> Any:
        return client.collection(collection).where(filter=FieldFilter("accountId", "==", account(scene)))

    return query


def _messages(scene: Scene, client: AsyncClient) -> Any:
    return client.collection(scene.messages()).order_by("createdAt")


def _newest_threads(scene: Scene, client: AsyncClient) -> Any:
    return of(ours, "threads")(scene, client).order_by("lastMessageAt", direction="DESCENDING").limit(20)


def _latest_notifications(scene: Scene, client: AsyncClient) -> Any:
    notifications = client.collection(f"accounts/{scene.account}/notifications")
    return notifications.order_by("createdAt", direction="DESCENDING").limit(50)


def ours(scene: Scene) -> str:
    return scene.account


def theirs(scene: Scene) -> str:
    return scene.other_account


READABLE: dict[str, Act] = {
    "the account": get(lambda scene: f"accounts/{scene.account}"),
    "a thread": get(lambda scene: scene.thread()),
    "the account's threads, newest first": find(_newest_threads),
    "a message": get(lambda scene: f"{scene.messages()}/inbound-1"),
    "a thread's messages in order": find(_messages),
    "an outbox document": get(lambda scene: f"outbox/{scene.colleagues}"),
    "the account's outbox": find(of(ours, "outbox")),
    "a run": get(lambda scene: f"runs/{scene.account}"),
    "the account's runs": find(of(ours, "runs")),
    "a reminder": get(lambda scene: f"reminders/{scene.account}"),
    "the account's reminders": find(of(ours, "reminders")),
    "the account's contacts": find(lambda scene, client: client.collection(f"accounts/{scene.account}/contacts")),
    "who opted out": find(lambda scene, client: client.collection(f"accounts/{scene.account}/suppressed")),
    "that one person opted out": get(lambda scene: f"accounts/{scene.account}/suppressed/{OLD_CONTACT}"),
    "how a run ended": get(lambda scene: f"accounts/{scene.account}/notifications/n-1"),
    "the account's latest notifications": find(_latest_notifications),
    "whether the account is connected": get(lambda scene: f"accounts/{scene.account}/session/current"),
}

FOR_OWNERS: dict[str, Act] = {
    "the account's action log": find(lambda scene, client: client.collection(f"accounts/{scene.account}/actions")),
    "the code that pairs the account": get(lambda scene: f"accounts/{scene.account}/session/qr"),
}

CLOSED: dict[str, Act] = {
    "all accounts": find(lambda scene, client: client.collection("accounts")),
    "the member document of a colleague": get(lambda scene: f"accounts/{scene.account}/members/{VIEWER}"),
    "all members": find(lambda scene, client: client.collection(f"accounts/{scene.account}/members")),
    "a colleague's memberships": find(lambda scene, client: memberships(client, VIEWER)),
    "all memberships": find(lambda scene, client: client.collection_group("members")),
    "another document of the session": get(lambda scene: f"accounts/{scene.account}/session/other"),
    "an upload": get(lambda scene: f"accounts/{scene.account}/uploads/media-1"),
    "a fetch": get(lambda scene: f"accounts/{scene.account}/fetches/message-1"),
    "an app's upload": get(lambda scene: f"accounts/{scene.account}/incoming/media-1"),
    "what a recipient got of marketing": get(lambda scene: f"accounts/{scene.account}/frequency/491"),
    "a key": get(lambda scene: f"accounts/{scene.account}/keys/1"),
    "what is paid": get(lambda scene: f"accounts/{scene.account}/billing/state"),
    "whose customer it is": get(lambda scene: "billingCustomers/cus_1"),
    "a lane": get(lambda scene: f"lanes/outbox:{scene.account}"),
    "all lanes": find(lambda scene, client: client.collection("lanes")),
    "a session": get(lambda scene: f"sessions/{scene.account}"),
    "targets of a reminder": find(lambda scene, client: client.collection(f"reminders/{scene.account}/targets")),
    "a limit": get(lambda scene: f"limits/{scene.key}"),
    "a media document": get(lambda scene: f"media/{scene.key}"),
    "an unknown collection": get(lambda scene: f"unheard/{scene.key}"),
    "all threads": find(lambda scene, client: client.collection("threads")),
    "threads of two accounts": find(
        lambda scene, client: client.collection("threads").where(
            filter=FieldFilter("accountId", "in", [scene.account, scene.other_account])
        )
    ),
    "threads of another account": find(of(theirs, "threads")),
    "a thread of another account": get(lambda scene: scene.thread(account=scene.other_account)),
    "messages of another account": find(
        lambda scene, client: client.collection(scene.messages(account=scene.other_account))
    ),
    "the account's messages over all threads": find(
        lambda scene, client: client.collection_group("messages").where(
            filter=FieldFilter("accountId", "==", scene.account)
        )
    ),
    "the whole outbox": find(lambda scene, client: client.collection("outbox")),
    "the outbox by author alone": find(
        lambda scene, client: client.collection("outbox").where(filter=FieldFilter("createdBy", "==", OWNER))
    ),
    "an outbox document of another account": get(lambda scene: f"outbox/{scene.strangers}"),
    "all runs": find(lambda scene, client: client.collection("runs")),
    "all reminders": find(lambda scene, client: client.collection("reminders")),
}


def memberships(client: AsyncClient, uid: str) -> Any:
    return client.collection_group("members").where(filter=FieldFilter("uid", "==", uid))


def own_memberships(uid: str) -> Callable[[Scene, AsyncClient], Any]:
    return lambda scene, client: memberships(client, uid)


def own_member_document(uid: str) -> Callable[[Scene], str]:
    return lambda scene: f"accounts/{scene.account}/members/{uid}"


def _count(scene: Scene, client: AsyncClient) -> Any:
    return of(ours, "threads")(scene, client).count()


def _waiting(scene: Scene, client: AsyncClient) -> Any:
    return of(ours, "outbox")(scene, client).where(filter=FieldFilter("status", "==", "queued"))


def _waiting_in_thread(scene: Scene, client: AsyncClient) -> Any:
    of_thread = of(ours, "outbox")(scene, client).where(filter=FieldFilter("threadId", "==", f"{scene.account}__+1"))
    return of_thread.where(filter=FieldFilter("status", "in", ["queued", "sending", "uncertain"]))


def _latest(scene: Scene, client: AsyncClient) -> Any:
    return client.collection(scene.messages()).order_by("createdAt", direction="DESCENDING").limit(50)


CASES = [
    *(
        Case(f"{who} reads {what}", person, act, allowed=True)
        for who, person in WITH_A_ROLE.items()
        for what, act in READABLE.items()
    ),
    *(
        Case(f"{who} does not read {what}", person, act, allowed=False)
        for who, person in WITHOUT_A_ROLE.items()
        for what, act in READABLE.items()
    ),
    *(Case(f"an owner reads {what}", OWNER, act, allowed=True) for what, act in FOR_OWNERS.items()),
    *(
        Case(f"{who} does not read {what}", person, act, allowed=False)
        for who, person in {**WITHOUT_A_ROLE, "an agent": AGENT, "a viewer": VIEWER}.items()
        for what, act in FOR_OWNERS.items()
    ),
    *(Case(f"an owner does not read {what}", OWNER, act, allowed=False) for what, act in CLOSED.items()),
    *(
        Case(f"{who} reads their own member document", person, get(own_member_document(person)), allowed=True)
        for who, person in WITH_A_ROLE.items()
    ),
    *(
        Case(f"{who} lists their own memberships", person, find(own_memberships(person)), allowed=True)
        for who, person in {**WITH_A_ROLE, "a stranger": STRANGER}.items()
    ),
    Case("a signed-out user lists no memberships", SIGNED_OUT, find(own_memberships(AGENT)), allowed=False),
    Case(
        "a signed-out user reads no member document",
        SIGNED_OUT,
        get(lambda s: f"accounts/{s.account}/members/{AGENT}"),
        False,
    ),
    Case("an agent counts the account's threads", AGENT, find(_count), allowed=True),
    Case("an agent finds what waits in the account's outbox", AGENT, find(_waiting), allowed=True),
    Case("an agent finds what waits in a thread", AGENT, find(_waiting_in_thread), allowed=True),
    Case("an agent reads the newest messages of a thread", AGENT, find(_latest), allowed=True),
    Case("an agent asks for a thread that is not there yet", AGENT, get(lambda s: s.thread(NEW_CONTACT)), True),
    Case(
        "an agent asks for a message that is not there yet",
        AGENT,
        get(lambda scene: f"{scene.messages(NEW_CONTACT)}/{scene.request_id}"),
        allowed=True,
    ),
    Case(
        "an agent asks for messages of a thread that is not there yet",
        AGENT,
        find(lambda scene, client: client.collection(scene.messages(NEW_CONTACT))),
        allowed=True,
    ),
    Case(
        "an agent asks for an outbox document that is not there yet",
        AGENT,
        get(lambda scene: f"outbox/{scene.request_id}"),
        allowed=True,
    ),
    Case(
        "a signed-out user asks for an outbox document that is not there yet",
        SIGNED_OUT,
        get(lambda scene: f"outbox/{scene.request_id}"),
        allowed=False,
    ),
    Case("an agent asks for a run that is not there", AGENT, get(lambda scene: f"runs/{scene.key}"), allowed=False),
]
