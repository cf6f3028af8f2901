"""Files in a directory of this machine: `{directory}/{accountId}/{mediaId}`, percent-encoded.

The type and the name of a file are beside it (directory_uploads.py), unless it was put there by hand: then each message
says them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, TypeVar
from urllib.parse import quote

from firestore_outbox.media.directory_links import signed_link
from firestore_outbox.media.directory_uploads import (
    DirectoryUploads,
    Session,
    describe,
    description_of,
    forget_description,
    is_description,
)
from firestore_outbox.media.storage import PIECE_BYTES, FileRef, Found, StorageUnavailable

T = TypeVar("T")

UNTOLD = "application/octet-stream"
"""The type of a file that was stored without one, as in a bucket: the message says it."""
LONGEST_NAME = 255
"""Of a file, on every system that we know. A longer one is replaced by its hash."""


class DirectoryStorage:
    """`url`: where a file server for this directory is. Empty: its files have no addresses."""

    def __init__(self, directory: Path, *, url: str = "") -> None:
        self._directory = directory
        self._url = url.rstrip("/")

    def where(self, ref: FileRef) -> str:
        return str(self._path(ref))

    async def find(self, ref: FileRef) -> Found | None:
        def look() -> Found | None:
            path = self._path(ref)
            if not path.is_file():
                return None
            about = description_of(path)
            told = about.get("mimeType") if about.get("mimeType") != UNTOLD else None
            return Found(
                size_bytes=path.stat().st_size,
                mime_type=told,
                filename=about.get("filename"),
                announced_sha256=about.get("sha256"),
            )

        return await self._in_thread(look)

    async def read(self, ref: FileRef) -> bytes | None:
        def content() -> bytes | None:
            try:
                return self._path(ref).read_bytes()
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                return None

        return await self._in_thread(content)

    async def pieces(self, ref: FileRef, found: Found) -> AsyncIterator[bytes]:
        for start in range(0, found.size_bytes, PIECE_BYTES):
            piece = await self._in_thread(partial(_piece, self._path(ref), start))
            if len(piece) != min(PIECE_BYTES, found.size_bytes - start):
                raise StorageUnavailable(f"{self.where(ref)} changed while it was read")
            yield piece

    async def link(self, ref: FileRef, *, lasts: timedelta) -> str | None:
        if not self._url or ref.account_id is None:
            return None
        names, now = (ref.account_id, ref.media_id), datetime.now(UTC)
        return await self._in_thread(lambda: signed_link(self._directory, self._url, names, now=now, lasts=lasts))

    async def open_upload(
        self, ref: FileRef, *, size_bytes: int, mime_type: str, filename: str | None, origin: str | None
    ) -> str | None:
        if not self._url:
            return None
        about = {"mimeType": mime_type, "filename": filename, "sha256": ref.media_id}
        session = Session(target=self.where(ref), size_bytes=size_bytes, about=about, origin=origin)
        token = await self._in_thread(lambda: DirectoryUploads(self._directory).open(session))
        return f"{self._url}/uploads/{token}"

    async def add(self, ref: FileRef, content: bytes, *, mime_type: str, filename: str | None) -> None:
        def put() -> None:
            target = self._path(ref)
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                describe(target, {"mimeType": mime_type, "filename": filename})
            self._write(target, lambda opened: opened.write(content))

        await self._in_thread(put)

    async def copy(self, ref: FileRef, to: FileRef) -> None:
        def copied() -> None:
            with self._path(ref).open("rb") as source:
                self._write(self._path(to), lambda opened: shutil.copyfileobj(source, opened))

        await self._in_thread(copied)

    async def delete_all(self, account_id: str) -> int:
        def deleted() -> int:
            folder = self._directory / _name(account_id)
            files = [one for one in folder.iterdir() if not is_description(one)] if folder.is_dir() else []
            shutil.rmtree(folder, ignore_errors=True)
            return len(files)

        return await self._in_thread(deleted)

    async def delete(self, ref: FileRef) -> bool:
        def deleted() -> bool:
            target = self._path(ref)
            if not target.is_file():
                return False
            target.unlink()
            forget_description(target)
            return True

        return await self._in_thread(deleted)

    def close(self) -> None:
        return None

    def _path(self, ref: FileRef) -> Path:
        folder = self._directory if ref.account_id is None else self._directory / _name(ref.account_id)
        return folder / _name(ref.media_id)

    def _write(self, target: Path, fill: Callable[[BinaryIO], object]) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            return
        # Its name is none of a file's: percent signs of ours are followed by two digits.
        file, path = tempfile.mkstemp(dir=target.parent, prefix="%new-")
        try:
            with os.fdopen(file, "wb") as opened:
                fill(opened)
                opened.flush()
                os.fsync(opened.fileno())
            os.chmod(path, 0o644)
            os.replace(path, target)
        except BaseException:
            Path(path).unlink(missing_ok=True)
            raise

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(None, work)
        except OSError as error:
            raise StorageUnavailable(f"{self._directory} cannot be used ({error.strerror or error})") from error


def _piece(path: Path, start: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(PIECE_BYTES)


def _name(media_id: str) -> str:
    """Of one part, and never the directory itself or the one above."""
    name = quote(media_id, safe="")
    if len(name) > LONGEST_NAME:
        return sha256(media_id.encode()).hexdigest()
    return name.replace(".", "%2E") if name.strip(".") == "" else name
