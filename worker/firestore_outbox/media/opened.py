"""Files in memory: each once, however many messages need it at a time, and all of them within the budget."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from firestore_outbox.media.budget import ByteBudget
from firestore_outbox.media.storage import FileRef

Read = Callable[[], Awaitable[bytes | None]]


@dataclass
class _Open:
    content: asyncio.Future[bytes | None]
    keeper: asyncio.Task[None]
    """Holds the file's share of the budget until it is cancelled."""
    users: int = 0


class OpenFiles:
    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self._open: dict[FileRef, _Open] = {}

    async def use(self, ref: FileRef, size_bytes: int, read: Read) -> bytes | None:
        """The file's content; None if it is gone. Call `done` once for each content that is not needed any more."""
        file = self._open.get(ref)
        if file is None:
            file = self._open[ref] = self._opened(size_bytes, read)
        file.users += 1
        try:
            content = await asyncio.shield(file.content)
        except BaseException:
            self._left(ref, file)
            raise
        if content is None:
            self._left(ref, file)
        return content

    def done(self, ref: FileRef) -> None:
        self._left(ref, self._open[ref])

    def _opened(self, size_bytes: int, read: Read) -> _Open:
        loop = asyncio.get_running_loop()
        content: asyncio.Future[bytes | None] = loop.create_future()
        return _Open(content, loop.create_task(self._keep(size_bytes, read, content)))

    async def _keep(self, size_bytes: int, read: Read, content: asyncio.Future[bytes | None]) -> None:
        async with self._budget.hold(size_bytes):
            try:
                content.set_result(await read())
            except Exception as error:  # noqa: BLE001 - those that wait for the content hear of it
                content.set_exception(error)
            await asyncio.Event().wait()  # until the last user has left

    def _left(self, ref: FileRef, file: _Open) -> None:
        file.users -= 1
        if file.users == 0:
            del self._open[ref]
            file.keeper.cancel()
            if file.content.done() and not file.content.cancelled():
                file.content.exception()  # every user has heard of it
