"""Events delivered as binary CloudEvents, at least once, in no promised order, as Eventarc does.

An event's row is deleted when its receiver has answered 2xx. Anything else, or no answer, and it is sent again after a
pause that doubles from one second to a minute, for a day. A crash between the answer and the deletion sends it twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from firestore_emulator.events.triggers import Triggers
from firestore_emulator.outgoing import HttpCall, Sender
from firestore_emulator.storage.engine import Change, Engine

log = logging.getLogger(__name__)

IN_FLIGHT = 32
DEADLINE = timedelta(seconds=60)
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0
GIVE_UP_AFTER_MICROS = 24 * 3600 * 1_000_000


class Delivery:
    def __init__(self, engine: Engine, triggers: Triggers, functions: str, send: Sender) -> None:
        """`functions` is the HOST:PORT that takes events at /functions/projects/{project}/triggers/{name}."""
        self._engine = engine
        self._triggers = triggers
        self._functions = functions
        self._send = send
        self._news = asyncio.Event()
        self._slots: dict[str, asyncio.Semaphore] = {}
        """For each trigger, so that a receiver that hangs holds up its own events alone."""
        self._taken = 0
        """Every event up to this number was handed to a task of this process."""
        self._under_way: set[asyncio.Task[None]] = set()
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._engine.after_commit.append(self._on_commit)
        self._news.set()  # what an earlier process left undelivered
        self._loop = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._loop is None:
            return
        self._engine.after_commit.remove(self._on_commit)
        for task in [self._loop, *self._under_way]:
            task.cancel()
        await asyncio.gather(self._loop, *self._under_way, return_exceptions=True)
        self._loop = None

    def _on_commit(self, changes: Sequence[Change], commit_micros: int) -> None:
        self._news.set()

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            # An event must not be seen before the change it tells of is in the file.
            await self._engine.settled()
            while rows := self._engine.storage.database.rows(
                "SELECT id, project, trigger, type, document, micros, payload FROM events "
                "WHERE id>? ORDER BY id LIMIT ?",
                (self._taken, IN_FLIGHT),
            ):
                for row in rows:
                    self._taken = row[0]
                    task = asyncio.create_task(self._deliver(*row))
                    self._under_way.add(task)
                    task.add_done_callback(self._under_way.discard)

    async def _deliver(
        self, number: int, project: str, trigger: str, event_type: str, document: str, micros: int, payload: bytes
    ) -> None:
        slots = self._slots.setdefault(f"{project}/{trigger}", asyncio.Semaphore(IN_FLIGHT))
        pause = FIRST_PAUSE_SECONDS
        while (database := self._triggers.database_of(project, trigger)) is not None:
            call = self._call(number, project, trigger, event_type, document, micros, payload, database)
            async with slots:
                if await self._try(call):
                    break
            if self._engine.now_micros() - micros > GIVE_UP_AFTER_MICROS:
                log.error("an event was given up", extra={"action": "event_dropped", "document": document})
                break
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        with self._engine.storage.database.atomic():
            self._engine.storage.database.execute("DELETE FROM events WHERE id=?", (number,))

    async def _try(self, call: HttpCall) -> bool:
        try:
            async with asyncio.timeout(call.deadline.total_seconds()):
                answer = await self._send(call)
        except Exception as error:  # noqa: BLE001 - whatever the network does, the event stays
            log.info("an event was not taken", extra={"action": "event_retry", "url": call.url, "error": repr(error)})
            return False
        return 200 <= answer.status < 300

    def _call(
        self,
        number: int,
        project: str,
        trigger: str,
        event_type: str,
        document: str,
        micros: int,
        payload: bytes,
        database: str,
    ) -> HttpCall:
        moment = datetime.fromtimestamp(micros // 1_000_000, UTC) + timedelta(microseconds=micros % 1_000_000)
        headers = {
            "Content-Type": "application/protobuf",
            "ce-specversion": "1.0",
            "ce-id": f"{micros}-{number}",
            "ce-type": event_type,
            "ce-source": f"//firestore.googleapis.com/projects/{project}/databases/{database}",
            "ce-subject": f"documents/{_header(document)}",
            "ce-time": moment.isoformat().replace("+00:00", "Z"),
            "ce-datacontenttype": "application/protobuf",
            "ce-dataschema": "https://github.com/googleapis/google-cloudevents/blob/main/proto/google/events/cloud/firestore/v1/data.proto",
            "ce-project": project,
            "ce-database": database,
            "ce-namespace": "(default)",
            "ce-location": "local",
            "ce-document": _header(document),
        }
        path = f"projects/{quote(project, safe='')}/triggers/{quote(trigger, safe='')}"
        return HttpCall(
            method="POST",
            url=f"http://{self._functions}/functions/{path}",
            headers=headers,
            body=payload,
            deadline=DEADLINE,
        )


def _header(text: str) -> str:
    """CloudEvents over HTTP: what is not printable ASCII is percent-encoded, and so are space, quote and percent."""
    return "".join(
        character
        if "!" <= character <= "~" and character not in '"%'
        else "".join(f"%{b:02X}" for b in character.encode())
        for character in text
    )
