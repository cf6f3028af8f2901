"""The SQLite file (or memory) under both engines.

Theory of operation. An engine is single-threaded: each of its operations runs to its end on the event loop, so no
two ever interleave and SQLite sees one connection. What costs time is SQLite's own COMMIT, so writes are grouped:
the first write in a turn of the event loop opens a transaction, and the next turn commits it. An answer is sent only
after `settled()`: whatever it tells of, its own write or one it merely read, is then in the file. A process killed at
any moment therefore loses nothing that it acknowledged, and shows nothing that it later forgets.

The file is in WAL mode with synchronous=NORMAL: a killed process loses nothing; a power cut may take the last commits
but never damages the file. With `survives_power_cuts` each group is synced to the disk (synchronous=FULL).

In memory there is nothing to survive, so `settled()` returns at once.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any


class DatabaseUnusable(RuntimeError):
    """The file cannot be opened or written, is no database, or is open in another process."""


class Database:
    def __init__(self, path: Path | None, schema: str, *, survives_power_cuts: bool = False) -> None:
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise DatabaseUnusable(f"{path.parent} cannot be made: {error.strerror}") from None
        self.is_durable = path is not None
        try:
            self._connection = self._open(path, survives_power_cuts)
            self._connection.executescript(schema)
        except sqlite3.Error as error:
            reason = "it is in use by another process" if "locked" in str(error) else str(error)
            raise DatabaseUnusable(f"{path} cannot be used: {reason}") from None
        self._open_group: asyncio.Future[None] | None = None
        # Bound once: these two are the hottest calls of an engine.
        self.execute = self._connection.execute
        self.executemany = self._connection.executemany
        self._atomic = _Atomic(self)

    @staticmethod
    def _open(path: Path | None, survives_power_cuts: bool) -> sqlite3.Connection:
        # check_same_thread is off because tests and tools may build an engine in one thread and run it in another;
        # it is never used from two at once.
        connection = sqlite3.connect(
            path or ":memory:", timeout=0, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        settings = ["foreign_keys=OFF", "temp_store=MEMORY", "cache_size=-65536"]
        if path is None:
            settings += ["journal_mode=MEMORY", "synchronous=OFF"]
        else:
            synchronous = "FULL" if survives_power_cuts else "NORMAL"
            settings += ["locking_mode=EXCLUSIVE", "journal_mode=WAL", f"synchronous={synchronous}"]
        try:
            for setting in settings:
                connection.execute(f"PRAGMA {setting}")
            if path is not None:
                connection.execute("BEGIN IMMEDIATE")  # takes the lock now, and keeps it
                connection.execute("COMMIT")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def rows(self, sql: str, parameters: Iterable[Any] = ()) -> list[Any]:
        return self._connection.execute(sql, tuple(parameters)).fetchall()

    def row(self, sql: str, parameters: Iterable[Any] = ()) -> Any | None:
        return self._connection.execute(sql, tuple(parameters)).fetchone()

    def atomic(self) -> AbstractContextManager[None]:
        """All of the writes inside, or none of them."""
        return self._atomic

    def join_group(self) -> None:
        if not self.is_durable or self._open_group is not None:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # no loop, no group: the outermost savepoint commits by itself
        self.execute("BEGIN")
        self._open_group = loop.create_future()
        # A task that awaits it gets the error; without one, a failed group is not also an unhandled error.
        self._open_group.add_done_callback(lambda future: future.exception())
        loop.call_soon(self._commit_group)

    def _commit_group(self) -> None:
        group = self._open_group
        if group is None:
            return
        self._open_group = None
        try:
            self.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self.execute("ROLLBACK")
            if not group.done():
                group.set_exception(error)
            return
        if not group.done():
            group.set_result(None)

    @property
    def open_group(self) -> asyncio.Future[None] | None:
        """What the writes so far wait for; None when they are in the file. For callers that cannot await just yet."""
        return self._open_group

    async def settled(self) -> None:
        """Returns when everything written so far is in the file. Await it in the same breath as the write: a group
        that failed before is not told of here."""
        if self._open_group is not None:
            await asyncio.shield(self._open_group)

    def close(self) -> None:
        self._commit_group()
        self._connection.close()


class _Atomic:
    """A savepoint. It holds no state, since SQLite nests them, so one serves all; and it is no generator, since every
    write of an engine passes through it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.join_group()
        self._database.execute("SAVEPOINT one")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if kind is not None:
            self._database.execute("ROLLBACK TO one")
        self._database.execute("RELEASE one")
