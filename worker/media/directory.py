"""A shelf on this machine: `{directory}/{mediaId}`, percent-encoded, and nothing but the content.

What a file's type and name are is told by each message that sends it.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from worker.media.shelf import Found, ShelfUnavailable

T = TypeVar("T")

LONGEST_NAME = 255
"""Of a file, on every system that we know. A longer one is replaced by its hash."""


class DirectoryShelf:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def where(self, media_id: str) -> str:
        return str(self._directory / _name(media_id))

    async def find(self, media_id: str) -> Found | None:
        def look() -> Found | None:
            path = self._directory / _name(media_id)
            return Found(size_bytes=path.stat().st_size) if path.is_file() else None

        return await self._in_thread(look)

    async def read(self, media_id: str) -> bytes | None:
        def content() -> bytes | None:
            try:
                return (self._directory / _name(media_id)).read_bytes()
            except (FileNotFoundError, IsADirectoryError):
                return None

        return await self._in_thread(content)

    async def link(self, media_id: str, *, lasts: timedelta) -> str | None:
        return None

    async def add(self, media_id: str, content: bytes, *, mime_type: str, filename: str | None) -> None:
        await self._in_thread(lambda: self._write(_name(media_id), content))

    def close(self) -> None:
        return None

    def _write(self, name: str, content: bytes) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        if (self._directory / name).exists():
            return
        # Its name is none of a file's: percent signs of ours are followed by two digits.
        file, path = tempfile.mkstemp(dir=self._directory, prefix="%new-")
        try:
            with os.fdopen(file, "wb") as opened:
                opened.write(content)
                opened.flush()
                os.fsync(opened.fileno())
            os.chmod(path, 0o644)
            os.replace(path, self._directory / name)
        except BaseException:
            Path(path).unlink(missing_ok=True)
            raise

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(None, work)
        except OSError as error:
            raise ShelfUnavailable(f"{self._directory} cannot be used ({error.strerror or error})") from error


def _name(media_id: str) -> str:
    """Of one part, and never the directory itself or the one above."""
    name = quote(media_id, safe="")
    if len(name) > LONGEST_NAME:
        return sha256(media_id.encode()).hexdigest()
    return name.replace(".", "%2E") if name.strip(".") == "" else name
