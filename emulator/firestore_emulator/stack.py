"""Firestore and Cloud Tasks together, served on two ports of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.rpc.server import PortTaken, Server
from firestore_emulator.storage.databases import DEFAULT
from firestore_emulator.tasks.emulator import TasksEmulator
from firestore_emulator.transactions.transaction import Concurrency

HOST = "127.0.0.1"


class CannotStart(RuntimeError):
    """What stands in the way, in words for the person who typed the command."""


@dataclass(frozen=True, kw_only=True)
class EmulatorSettings:
    firestore_port: int = 8080
    """0 takes a free one."""
    firestore_port_option: str = "--firestore-port"
    """The option that an error names when the port is taken."""
    tasks_port: int = 8123
    data: Path | None = None
    """A directory; None keeps everything in memory."""
    indexes: Path | None = None
    rules: Path | None = None
    """Security rules to enforce, loaded again when the file changes; None enforces none."""
    functions: str | None = None
    """HOST:PORT that Firestore events are delivered to, and tasks without a URL."""
    databases: Sequence[str] = ()
    """Ids of databases that every project has besides `(default)`."""
    queues: Sequence[str] = ()
    host: str = HOST
    """The address to listen on. Every caller is believed, so any other than this machine's needs a wall around it."""
    survives_power_cuts: bool = False
    """Each commit is synced to the disk before it is acknowledged."""
    tasks_only: bool = False
    """Where Firestore is, if another process serves it."""
    concurrency: Concurrency = Concurrency.PESSIMISTIC
    """Of Firestore's read-write transactions that do not ask for one themselves."""


class EmulatorStack:
    """`async with EmulatorStack(settings) as stack`: both answer from its first line to its last."""

    def __init__(self, settings: EmulatorSettings) -> None:
        self._settings = settings
        self._servers: list[Server] = []
        self._firestore = None if settings.tasks_only else _firestore(settings)
        try:
            self._tasks = TasksEmulator(
                settings.data,
                queues=settings.queues,
                functions=settings.functions,
                survives_power_cuts=settings.survives_power_cuts,
            )
        except BaseException:
            if self._firestore is not None:
                self._firestore.engine.close()
            raise
        self.firestore_address = ""
        self.tasks_address = ""

    async def __aenter__(self) -> EmulatorStack:
        settings = self._settings
        try:
            if self._firestore is not None:
                await self._firestore.start()
                firestore = await _serve(
                    self._firestore, settings.host, settings.firestore_port, settings.firestore_port_option
                )
                self._servers.append(firestore)
                self.firestore_address = firestore.address
            await self._tasks.start()
            tasks = await _serve(self._tasks, settings.host, settings.tasks_port, "--tasks-port")
            self._servers.append(tasks)
            self.tasks_address = tasks.address
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stop()

    async def _stop(self) -> None:
        for server in self._servers:
            await server.stop()
        await self._tasks.stop()
        if self._firestore is not None:
            await self._firestore.stop()


def _firestore(settings: EmulatorSettings) -> FirestoreEmulator:
    return FirestoreEmulator(
        settings.data,
        indexes=settings.indexes,
        rules=settings.rules,
        databases=(DEFAULT, *settings.databases),
        functions=settings.functions,
        concurrency=settings.concurrency,
        survives_power_cuts=settings.survives_power_cuts,
    )


async def _serve(emulator: FirestoreEmulator | TasksEmulator, host: str, port: int, option: str) -> Server:
    try:
        return await Server.start(emulator.service, http=emulator.http_app, host=host, port=port)
    except PortTaken:
        raise CannotStart(
            f"port {port} on {host} is taken; choose another with {option} (0 takes a free one)"
        ) from None
