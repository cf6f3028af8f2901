"""Uploads into a directory, in pieces and resumable, as Cloud Storage takes them.

An upload is one file for what has come so far, and one for what it will be. Both are in `%uploads`, whose name is none
of an account's.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

FOLDER = "%uploads"
_TOKEN_BYTES = 24
_ABOUT = "%about"
"""How the names of descriptions end. In a file's own name, two digits follow a percent sign."""
_LONGEST_NAME = 240
"""Of a file whose description can have its name and that end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    target: str
    """The file that it becomes."""
    size_bytes: int
    about: dict[str, str | None]
    """The file's type and name."""
    origin: str | None
    """The web page that uploads."""


@dataclass(frozen=True, slots=True)
class Progress:
    received_bytes: int
    is_complete: bool


class DirectoryUploads:
    """For one process at a time: the file server of the directory appends, others only open sessions."""

    def __init__(self, directory: Path) -> None:
        self._folder = directory / FOLDER

    def open(self, session: Session) -> str:
        """The session's token, which cannot be guessed."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._folder.mkdir(parents=True, exist_ok=True)
        written = self._folder / f".{token}"
        fields = {name: getattr(session, name) for name in Session.__dataclass_fields__}
        written.write_text(json.dumps(fields), encoding="utf-8")
        written.rename(self._about(token))
        return token

    def find(self, token: str) -> Session | None:
        if not token.replace("-", "").replace("_", "").isalnum():
            return None
        try:
            return Session(**json.loads(self._about(token).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def progress(self, token: str, session: Session) -> Progress:
        part = self._part(token)
        if part.exists():
            return Progress(part.stat().st_size, False)
        return Progress(session.size_bytes, True) if Path(session.target).exists() else Progress(0, False)

    def append(self, token: str, session: Session, start: int, content: bytes) -> Progress:
        """Bytes that have come before are passed over."""
        so_far = self.progress(token, session)
        if so_far.is_complete or start > so_far.received_bytes:
            return so_far
        with self._part(token).open("ab") as part:
            part.write(content[so_far.received_bytes - start :])
            part.flush()
            os.fsync(part.fileno())
        return self._completed(token, session)

    def _completed(self, token: str, session: Session) -> Progress:
        part, target = self._part(token), Path(session.target)
        size = part.stat().st_size
        if size < session.size_bytes:
            return Progress(size, False)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            part.unlink()
        else:
            describe(target, session.about)
            part.rename(target)
        return Progress(session.size_bytes, True)

    def _about(self, token: str) -> Path:
        return self._folder / f"{token}.json"

    def _part(self, token: str) -> Path:
        return self._folder / f"{token}.part"


def describe(target: Path, about: dict[str, str | None]) -> None:
    """Write the type and the name of a file beside it."""
    _beside(target).write_text(json.dumps(about), encoding="utf-8")


def description_of(target: Path) -> dict[str, str | None]:
    """Empty for a file that was put there by hand."""
    try:
        about = json.loads(_beside(target).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}


def is_description(path: Path) -> bool:
    return path.name.endswith(_ABOUT)


def forget_description(target: Path) -> None:
    _beside(target).unlink(missing_ok=True)


def _beside(target: Path) -> Path:
    is_short = len(target.name) <= _LONGEST_NAME
    name = target.name if is_short else sha256(target.name.encode()).hexdigest()
    return target.with_name(f"{name}{_ABOUT}")
