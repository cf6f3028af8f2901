"""Names in requests: parsed, and of a database that exists."""

from __future__ import annotations

from firestore_emulator.documents.names import Location, parse_database, parse_document, parse_parent
from firestore_emulator.rpc.errors import not_found
from firestore_emulator.storage.databases import Databases


class Named:
    def __init__(self, databases: Databases) -> None:
        self._databases = databases

    def database(self, name: str) -> str:
        database = parse_database(name)
        _, project_id, _, database_id = database.split("/")
        if not self._databases.exists(project_id, database_id):
            raise not_found(f"The database {database_id} does not exist for project {project_id}.")
        return database

    def document(self, name: str) -> Location:
        location = parse_document(name)
        self.database(location.database)
        return location

    def parent(self, name: str) -> Location:
        location = parse_parent(name)
        self.database(location.database)
        return location
