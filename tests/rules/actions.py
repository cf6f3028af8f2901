"""What people do: an action takes the scene, the person's client and their uid; the rules allow it or refuse it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from google.cloud.firestore import SERVER_TIMESTAMP, AsyncClient

from tests.rules.scene import NEW_CONTACT, Draft, Scene

Act = Callable[[Scene, AsyncClient, str | None], Awaitable[Any]]
Edit = Callable[[Draft], None]
Path = Callable[[Scene], str]


@dataclass(frozen=True)
class Case:
    name: str
    who: str | None
    act: Act
    allowed: bool


# --- sending


def send(*edits: Edit, to: str = NEW_CONTACT, request_id: Path | None = None, account: Path | None = None) -> Act:
    """The batch of the contract, with something changed."""

    async def act(scene: Scene, client: AsyncClient, uid: str | None) -> None:
        chosen = scene.request_id if request_id is None else request_id(scene)
        draft = Draft.of(chosen, scene.account if account is None else account(scene), to, uid or "signed-out")
        for edit in edits:
            edit(draft)
        batch = client.batch()
        draft.write(batch, client)
        await batch.commit()

    return act


def send_with_a_copy_in(path: Path, **changed: Path) -> Act:
    """A good message, and its message document once more in another place, with some fields changed."""

    async def act(scene: Scene, client: AsyncClient, uid: str | None) -> None:
        draft = Draft.of(scene.request_id, scene.account, NEW_CONTACT, uid)
        batch = client.batch()
        draft.write(batch, client)
        copy = {**_present(draft.message), **{name: value(scene) for name, value in changed.items()}}
        batch.set(client.document(path(scene)), copy)
        await batch.commit()

    return act


def send_many(count: int) -> Act:
    """Several messages in one commit, each to a contact of its own."""

    async def act(scene: Scene, client: AsyncClient, uid: str | None) -> None:
        batch = client.batch()
        for number in range(count):
            Draft.of(f"{scene.request_id}-{number}", scene.account, f"{NEW_CONTACT}{number}", uid).write(batch, client)
        await batch.commit()

    return act


def in_thread(**fields: Any) -> Edit:
    return lambda draft: _present(draft.thread).update(fields)


def in_message(**fields: Any) -> Edit:
    return lambda draft: _present(draft.message).update(fields)


def in_outbox(**fields: Any) -> Edit:
    return lambda draft: _present(draft.outbox).update(fields)


def in_both(**fields: Any) -> Edit:
    """In the message and in the outbox document, which must agree."""

    def edit(draft: Draft) -> None:
        _present(draft.message).update(fields)
        _present(draft.outbox).update(fields)

    return edit


def parts(*values: Any) -> Edit:
    return in_both(parts=list(values))


def without(document: str, name: str) -> Edit:
    return lambda draft: _present(getattr(draft, document)).pop(name)


def left_out(*documents: str) -> Edit:
    def edit(draft: Draft) -> None:
        for document in documents:
            setattr(draft, document, None)

    return edit


def stored_as(document: str, path: Path) -> Edit:
    """The same document under another name."""

    def edit(draft: Draft) -> None:
        scene = Scene(_present(draft.outbox)["accountId"].removeprefix("shop-"))
        draft.paths[document] = path(scene)

    return edit


def _present(document: dict[str, Any] | None) -> dict[str, Any]:
    assert document is not None, "the document was left out before"
    return document


# --- single documents


def get(path: Path) -> Act:
    async def act(scene: Scene, client: AsyncClient, uid: str | None) -> None:
        await client.document(path(scene)).get()

    return act


def write(path: Path, fields: dict[str, Any]) -> Act:
    async def act(scene: Scene, client: AsyncClient, uid: str | None) -> None:
        await client.document(path(scene)).set(fields)

    return act


def cancel(path: Path, wish: bool | None = True, **fields: Any) -> Act:
    """The wish on an outbox document, and the document that has it granted at once. None: without the wish."""

    async def act(scene: Scene, client: AsyncClient, uid: str | None) -> None:
        batch = client.batch()
        outbox = client.document(path(scene))
        if wish is not None:
            batch.update(outbox, {"cancelRequested": wish})
        batch.set(client.document(f"cancels/{outbox.id}"), {"createdAt": SERVER_TIMESTAMP, **fields})
        await batch.commit()

    return act


def update(path: Path, **fields: Any) -> Act:
    async def act(scene: Scene, client: AsyncClient, uid: str | None) -> None:
        await client.document(path(scene)).update(fields)

    return act


def delete(path: Path) -> Act:
    async def act(scene: Scene, client: AsyncClient, uid: str | None) -> None:
        await client.document(path(scene)).delete()

    return act


# --- queries


def find(query: Callable[[Scene, AsyncClient], Any]) -> Act:
    async def act(scene: Scene, client: AsyncClient, uid: str | None) -> None:
        await query(scene, client).get()

    return act
