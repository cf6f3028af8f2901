"""The queues: settings, state and bucket of each, in memory and written through to the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from firestore_emulator.database import Database
from firestore_emulator.rpc.errors import already_exists, failed_precondition, not_found
from firestore_emulator.rpc.service import Message
from firestore_emulator.tasks import pacing, protos
from firestore_emulator.tasks.names import location_of
from firestore_emulator.tasks.pacing import Bucket, Limits, Slowdown
from firestore_emulator.tasks.retry import Policy
from firestore_emulator.tasks.rules import limits_of, policy_of
from firestore_emulator.tasks.times import EPOCH, from_us, set_timestamp, to_us

SCHEMA = """
CREATE TABLE IF NOT EXISTS queues (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    settings BLOB NOT NULL,
    tokens REAL NOT NULL,
    tokens_at_us INTEGER NOT NULL,
    slow_level INTEGER NOT NULL,
    slow_since_us INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS queue_tombstones (
    name TEXT PRIMARY KEY, gone_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""


@dataclass(slots=True)
class Queue:
    """One queue. It changes only through `Queues`, which writes each change to the file as well."""

    id: int
    settings: Message
    """The Queue protobuf as clients see it, never changed in place."""
    bucket: Bucket
    slowdown: Slowdown
    limits: Limits = field(init=False)
    policy: Policy = field(init=False)

    def __post_init__(self) -> None:
        self.limits = limits_of(self.settings)
        self.policy = policy_of(self.settings.retry_config)

    @property
    def name(self) -> str:
        name: str = self.settings.name
        return name

    @property
    def running(self) -> bool:
        return bool(self.settings.state == protos.RUNNING)


class Queues:
    def __init__(self, database: Database, *, tombstone: timedelta) -> None:
        self._database = database
        self._tombstone = tombstone
        self._by_name: dict[str, Queue] = {}
        self._by_id: dict[int, Queue] = {}
        self.load()

    def load(self) -> None:
        """Take the file's word for everything."""
        self._by_name, self._by_id = {}, {}
        for id_, settings, tokens, tokens_at_us, level, since_us in self._database.rows(
            "SELECT id, settings, tokens, tokens_at_us, slow_level, slow_since_us FROM queues"
        ):
            bucket = Bucket(tokens, from_us(tokens_at_us))
            self._keep(Queue(id_, protos.Queue.FromString(settings), bucket, Slowdown(level, from_us(since_us))))

    def __iter__(self) -> Iterator[Queue]:
        return iter(self._by_id.values())

    def get(self, name: str) -> Queue:
        queue = self._by_name.get(name)
        if queue is None:
            raise not_found(
                "Queue does not exist. If you just created the queue, "
                "wait at least a minute for the queue to initialize."
            )
        return queue

    def find(self, name: str) -> Queue | None:
        return self._by_name.get(name)

    def by_id(self, id_: int) -> Queue | None:
        return self._by_id.get(id_)

    def page(self, location: str, after: str, size: int) -> list[Queue]:
        """Of one location by name, at most `size`, from behind the name `after`."""
        names = sorted(n for n in self._by_name if location_of(n) == location and n > after)
        return [self._by_name[name] for name in names[:size]]

    def create(self, settings: Message, now: datetime) -> Queue:
        name = settings.name
        if name in self._by_name:
            raise already_exists("Queue already exists")
        gone = self._database.row("SELECT gone_at_us FROM queue_tombstones WHERE name = ?", (name,))
        if gone is not None and now < from_us(gone[0]) + self._tombstone:
            raise failed_precondition(
                "The queue cannot be created because a queue with this name existed too recently."
            )
        bucket = pacing.full(limits_of(settings), now)
        with self._database.atomic():
            self._database.execute("DELETE FROM queue_tombstones WHERE name = ?", (name,))
            cursor = self._database.execute(
                "INSERT INTO queues (name, settings, tokens, tokens_at_us, slow_level, slow_since_us) "
                "VALUES (?, ?, ?, ?, 0, 0)",
                (name, settings.SerializeToString(), bucket.tokens, to_us(now)),
            )
        assert cursor.lastrowid is not None
        return self._keep(Queue(cursor.lastrowid, settings, bucket, Slowdown(0, EPOCH)))

    def change(self, queue: Queue, settings: Message) -> None:
        with self._database.atomic():
            self._database.execute(
                "UPDATE queues SET settings = ? WHERE id = ?", (settings.SerializeToString(), queue.id)
            )
        queue.settings, queue.limits = settings, limits_of(settings)
        queue.policy = policy_of(settings.retry_config)

    def set_state(self, queue: Queue, state: int) -> None:
        settings = _copy(queue.settings)
        settings.state = state
        self.change(queue, settings)

    def set_purge_time(self, queue: Queue, now: datetime) -> None:
        settings = _copy(queue.settings)
        set_timestamp(settings.purge_time, to_us(now))
        self.change(queue, settings)

    def set_pace(self, queue: Queue, bucket: Bucket, slowdown: Slowdown) -> None:
        with self._database.atomic():
            self._database.execute(
                "UPDATE queues SET tokens = ?, tokens_at_us = ?, slow_level = ?, slow_since_us = ? WHERE id = ?",
                (bucket.tokens, to_us(bucket.at), slowdown.level, to_us(slowdown.since), queue.id),
            )
        queue.bucket, queue.slowdown = bucket, slowdown

    def delete(self, queue: Queue, now: datetime) -> None:
        with self._database.atomic():
            self._database.execute("DELETE FROM queues WHERE id = ?", (queue.id,))
            if self._tombstone:
                self._database.execute(
                    "INSERT OR REPLACE INTO queue_tombstones VALUES (?, ?)", (queue.name, to_us(now))
                )
        del self._by_name[queue.name], self._by_id[queue.id]

    def clear(self) -> None:
        with self._database.atomic():
            self._database.execute("DELETE FROM queues")
            self._database.execute("DELETE FROM queue_tombstones")
        self._by_name, self._by_id = {}, {}

    def _keep(self, queue: Queue) -> Queue:
        self._by_name[queue.name] = self._by_id[queue.id] = queue
        return queue


def _copy(settings: Message) -> Message:
    copied = protos.Queue()
    copied.CopyFrom(settings)
    return copied
