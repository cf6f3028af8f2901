"""Files in a directory of this machine: `{directory}/{accountId}/{mediaId}`, percent-encoded, content only.

Each message says the type and the name of the file that it sends.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, TypeVar
from urllib.parse import quote

from firestore_outbox.media.storage import PIECE_BYTES, FileRef, Found, StorageUnavailable

T = TypeVar("T")

LONGEST_NAME = 255
"""Of a file, on every system that we know. A longer one is replaced by its hash."""


class DirectoryStorage:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def where(self, ref: FileRef) -> str:
        return str(self._path(ref))

    async def find(self, ref: FileRef) -> Found | None:
        def look() -> Found | None:
            path = self._path(ref)
            return Found(size_bytes=path.stat().st_size) if path.is_file() else None

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
        return None

    async def add(self, ref: FileRef, content: bytes, *, mime_type: str, filename: str | None) -> None:
        await self._in_thread(lambda: self._write(self._path(ref), lambda opened: opened.write(content)))

    async def copy(self, ref: FileRef, to: FileRef) -> None:
        def copied() -> None:
            with self._path(ref).open("rb") as source:
                self._write(self._path(to), lambda opened: shutil.copyfileobj(source, opened))

        await self._in_thread(copied)

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
