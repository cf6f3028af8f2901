"""Deleting much at once, as Google's emulator offers it to tools: a document or collection with all below it, or whole
collection groups. They are found by a query and deleted by commits, which obey locks and cause events as always.
"""

from __future__ import annotations

from typing import Any

from firestore_emulator.documents.protos import CommitRequest, Proto, RunQueryRequest, Write
from firestore_emulator.rpc.errors import failed_precondition, invalid_argument
from firestore_emulator.rpc.service import Call, ServerStream, Service, Unary

BATCH = 500
_CALL = Call(metadata={"authorization": "Bearer owner"}, is_billed=False)
"""An administrator's, which security rules do not judge."""


async def delete_below(service: Service, root: str, path: str) -> None:
    """`path` is a document or a collection below `root`, the name of a database's documents."""
    name = f"{root}/{path}"
    is_document = path.count("/") % 2 == 1
    parent = name if is_document else name.rpartition("/")[0]
    query = RunQueryRequest(parent=parent)
    query.structured_query.from_.add().all_descendants = True
    found = [document for document in await _names(service, query) if document.startswith(name + "/")]
    await _delete(service, root.removesuffix("/documents"), [name, *found] if is_document else found)


async def delete_groups(service: Service, request: dict[str, Any]) -> None:
    """Every document whose collection has one of these ids, wherever it is. What is below such a document stays."""
    database = request.get("database")
    groups = request.get("collectionIds", request.get("collection_ids", []))
    if not isinstance(database, str) or not isinstance(groups, list):
        raise invalid_argument(
            "A database, projects/PROJECT/databases/DATABASE, and a list of collectionIds are needed."
        )
    if not groups:
        raise failed_precondition("collectionIds must not be empty.")
    names: list[str] = []
    for group in groups:
        if not isinstance(group, str) or not group:
            raise invalid_argument("collectionIds must be strings.")
        query = RunQueryRequest(parent=f"{database}/documents")
        selector = query.structured_query.from_.add()
        selector.collection_id, selector.all_descendants = group, True
        names += await _names(service, query)
    await _delete(service, database, names)


async def _names(service: Service, query: Proto) -> list[str]:
    query.structured_query.select.fields.add().field_path = "__name__"
    method = service.methods["RunQuery"]
    assert isinstance(method, ServerStream)
    answers = [answer async for answer in method.handler(query, _CALL)]
    return [answer.document.name for answer in answers if answer.HasField("document")]


async def _delete(service: Service, database: str, names: list[str]) -> None:
    method = service.methods["Commit"]
    assert isinstance(method, Unary)
    for start in range(0, len(names), BATCH):
        writes = [Write(delete=name) for name in names[start : start + BATCH]]
        await method.handler(CommitRequest(database=database, writes=writes), _CALL)
