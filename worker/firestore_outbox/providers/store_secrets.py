"""Putting an account's secrets where `credentials_from` will find them. What is in the environment cannot be put there
from here: the user sees what to add, by name and never by value."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from firestore_outbox.providers.credentials import (
    FILE_VARIABLE,
    SECRETS_HOST_VARIABLE,
    SECRETS_VARIABLE,
    VARIABLE,
    CredentialsUnavailable,
    entries_in,
)


@dataclass(frozen=True, slots=True)
class Kept:
    where: str


@dataclass(frozen=True, slots=True)
class NotKept:
    """A person has to do it by hand."""

    to_do: str


class Keeper(Protocol):
    async def keep(self, account_id: str, secrets: Mapping[str, str]) -> Kept | NotKept:
        """In place of what was kept for this account before. Raises CredentialsUnavailable."""
        ...

    async def forget(self, account_id: str) -> str | None:
        """Remove the account's entry. Returns what a person has to do; None: nothing. Raises CredentialsUnavailable."""
        ...


class FileKeeper:
    """A new file in the place of the old one: a reader sees one or the other. Only its owner may read it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def keep(self, account_id: str, secrets: Mapping[str, str]) -> Kept:
        self._write({**self._entries(), account_id: dict(secrets)})
        return Kept(str(self._path))

    async def forget(self, account_id: str) -> None:
        entries = self._entries()
        if entries.pop(account_id, None) is not None:
            self._write(entries)

    def _entries(self) -> dict[str, Any]:
        try:
            return entries_in(self._path.read_text(encoding="utf-8"), str(self._path))
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise CredentialsUnavailable(f"{self._path} cannot be read ({type(error).__name__})") from None

    def _write(self, entries: Mapping[str, Any]) -> None:
        try:
            self._replace(json.dumps(entries, indent=2) + "\n")
        except OSError as error:
            raise CredentialsUnavailable(f"{self._path} cannot be written ({error.strerror})") from None

    def _replace(self, text: str) -> None:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=self._path.parent, prefix=f".{self._path.name}.", delete=False
        ) as new:  # readable by its owner alone, as all of tempfile's are
            try:
                new.write(text)
                new.flush()
                os.fsync(new.fileno())
                os.replace(new.name, self._path)
            except BaseException:
                os.unlink(new.name)
                raise


class SecretManagerKeeper:
    def __init__(self, parent: str, host: str) -> None:
        self._parent = parent
        self._host = host

    async def keep(self, account_id: str, secrets: Mapping[str, str]) -> Kept:
        from firestore_outbox.providers.secret_manager import connect

        manager = connect(self._parent, self._host)
        try:
            return Kept(await manager.add(account_id, json.dumps(dict(secrets))))
        finally:
            await manager.close()

    async def forget(self, account_id: str) -> str:
        """The versions of a secret may be needed as evidence, and deleting one cannot be undone: a person decides."""
        from firestore_outbox.providers.secret_manager import secret_id

        project = self._parent.removeprefix("projects/")
        return f"delete its secret: gcloud secrets delete {secret_id(account_id)} --project={project}"


class ByHand:
    def __init__(self, is_set: bool) -> None:
        """`is_set`: the environment holds the credentials of others already."""
        self._is_set = is_set

    async def keep(self, account_id: str, secrets: Mapping[str, str]) -> NotKept:
        entry = json.dumps({account_id: dict.fromkeys(secrets, "…")}, ensure_ascii=False)
        if self._is_set:
            return NotKept(f"add this to {VARIABLE} of functions and worker, with the values: {entry}")
        return NotKept(
            f"set {FILE_VARIABLE} to a file or {SECRETS_VARIABLE} to projects/PROJECT, here and for functions and "
            f"worker, and run this again; or set {VARIABLE} there, with the values: {entry}"
        )

    async def forget(self, account_id: str) -> str | None:
        return f"remove the entry {account_id} from {VARIABLE} of functions and worker" if self._is_set else None


def keeper_from(environment: Mapping[str, str] = os.environ) -> Keeper:
    """Beside `credentials_from`, and by the same order."""
    if path := environment.get(FILE_VARIABLE):
        return FileKeeper(Path(path))
    if environment.get(VARIABLE):
        return ByHand(is_set=True)
    if parent := environment.get(SECRETS_VARIABLE):
        return SecretManagerKeeper(parent, environment.get(SECRETS_HOST_VARIABLE, ""))
    return ByHand(is_set=False)
