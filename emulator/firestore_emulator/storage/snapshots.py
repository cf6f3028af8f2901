"""Named states of a project: saved, and restored by writing what differs. They are kept in memory.

A restored document has its fields back and a new update time, since clients that keep documents pass over a version
that is older than theirs. What is as it was saved is not touched, so restoring costs what a test has changed.
"""

from __future__ import annotations

from collections.abc import Iterable

from firestore_emulator.documents import keys
from firestore_emulator.documents.names import Location, location_of
from firestore_emulator.documents.protos import Document, Proto
from firestore_emulator.documents.writes import CheckedWrite
from firestore_emulator.rpc.errors import not_found
from firestore_emulator.storage.engine import Engine

State = dict[bytes, bytes]
"""Documents by their keys."""


class Snapshots:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._saved: dict[tuple[str, str], State] = {}

    def save(self, project: str, name: str) -> int:
        """All documents of all databases of the project, in the place of what had this name. Returns how many."""
        self._saved[project, name] = self._state(project)
        return len(self._saved[project, name])

    def names(self, project: str) -> list[str]:
        return [name for owner, name in self._saved if owner == project]

    def forget(self, project: str, name: str) -> None:
        if self._saved.pop((project, name), None) is None:
            raise _unknown(project, name)

    def restore(self, project: str, name: str, *, with_triggers: bool = True) -> int:
        """Returns how many documents were written or deleted. `with_triggers`: these cause events."""
        saved = self._saved.get((project, name))
        if saved is None:
            raise _unknown(project, name)
        now = self._state(project)
        writes: dict[str, list[CheckedWrite]] = {}
        for write in _differences(now, saved):
            writes.setdefault(write.location.database, []).append(write)
        for changes in writes.values():
            self._engine.store(self._engine.draft(changes), with_triggers=with_triggers)
        return sum(map(len, writes.values()))

    def _state(self, project: str) -> State:
        prefix = keys.project_key(project)
        sql = "SELECT key, data FROM documents WHERE key>=? AND key<?"
        return dict(self._engine.storage.database.rows(sql, (prefix, prefix + keys.AFTER)))


def _differences(now: State, saved: State) -> Iterable[CheckedWrite]:
    for key in now.keys() - saved.keys():
        yield _write(location_of(Document.FromString(now[key])), None)
    for key, data in saved.items():
        if now.get(key) != data:
            document = _without_times(data)
            if key not in now or _without_times(now[key]) != document:
                yield _write(location_of(document), document)


def _without_times(data: bytes) -> Proto:
    document = Document.FromString(data)
    document.ClearField("create_time")
    document.ClearField("update_time")
    return document


def _write(location: Location, document: Proto | None) -> CheckedWrite:
    return CheckedWrite(location, document, document is None, None, (), None, None)


def _unknown(project: str, name: str) -> Exception:
    return not_found(f'There is no snapshot "{name}" of project {project}.')
