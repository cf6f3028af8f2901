"""Which databases exist. A call that names any other is answered with NOT_FOUND, as in production.

Some exist in every project: `(default)`, and those that the emulator was started with. Others are created in one
project while the emulator runs, and are kept with its data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from firestore_emulator.documents import keys
from firestore_emulator.documents.names import location_of
from firestore_emulator.documents.protos import Document
from firestore_emulator.rpc.errors import already_exists, failed_precondition, invalid_argument, not_found
from firestore_emulator.storage.engine import Engine

DEFAULT = "(default)"
ID_RULE = "4 to 63 lowercase letters, digits and hyphens, a letter first, no hyphen last, and no UUID"

_ID = re.compile(r"[a-z][a-z0-9-]{2,61}[a-z0-9]\Z")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


def is_database_id(text: str) -> bool:
    return text == DEFAULT or (_ID.match(text) is not None and _UUID.match(text) is None)


class Databases:
    def __init__(self, engine: Engine, everywhere: Iterable[str] = (DEFAULT,)) -> None:
        """`everywhere`: the ids of those that exist in every project."""
        self._engine = engine
        self._everywhere = tuple(dict.fromkeys(everywhere))
        rows = engine.storage.database.rows("SELECT project, id FROM databases ORDER BY project, id")
        self._created: dict[tuple[str, str], None] = dict.fromkeys(rows)

    def exists(self, project: str, database_id: str) -> bool:
        return database_id in self._everywhere or (project, database_id) in self._created

    def of(self, project: str) -> list[str]:
        return [*self._everywhere, *(database_id for owner, database_id in self._created if owner == project)]

    def create(self, project: str, database_id: str) -> None:
        if not is_database_id(database_id):
            raise invalid_argument(f'"{database_id}" is no database id. It must have {ID_RULE}.')
        if self.exists(project, database_id):
            raise already_exists(f"The database {database_id} exists in project {project}.")
        storage = self._engine.storage.database
        with storage.atomic():
            storage.execute("INSERT INTO databases(project, id) VALUES(?, ?)", (project, database_id))
        self._created[project, database_id] = None

    def delete(self, project: str, database_id: str) -> None:
        """With all of its documents."""
        if database_id in self._everywhere:
            raise failed_precondition(f"The database {database_id} exists in every project; clear its documents.")
        if (project, database_id) not in self._created:
            raise not_found(f"The database {database_id} does not exist for project {project}.")
        storage = self._engine.storage.database
        with storage.atomic():
            self._engine.clear(f"projects/{project}/databases/{database_id}")
            storage.execute("DELETE FROM databases WHERE project=? AND id=?", (project, database_id))
        del self._created[project, database_id]

    def in_use(self) -> list[str]:
        """The names of all databases that hold a document, of every project, in order. One read for each."""
        found, after = [], b""
        sql = "SELECT data FROM documents WHERE key>=? ORDER BY key LIMIT 1"
        while (row := self._engine.storage.database.execute(sql, (after,)).fetchone()) is not None:
            name = location_of(Document.FromString(row[0])).database
            found.append(name)
            after = keys.database_key(name) + keys.AFTER
        return found
