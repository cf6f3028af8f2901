"""Snapshots and seeds of a project over HTTP.

GET    /emulator/v1/projects/{project}/snapshots               {"snapshots": [NAME, ...]}
PUT    /emulator/v1/projects/{project}/snapshots/{name}        saves all documents of the project
POST   /emulator/v1/projects/{project}/snapshots/{name}:restore
DELETE /emulator/v1/projects/{project}/snapshots/{name}
POST   /emulator/v1/projects/{project}/databases/{database}:seed    a JSON object of documents by path (seeds.py)

With `?triggers=false`, restoring and seeding cause no events.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from firestore_emulator.documents.writes import check_repeated, check_write
from firestore_emulator.rpc.errors import invalid_argument, not_found
from firestore_emulator.storage.databases import Databases
from firestore_emulator.storage.engine import Engine
from firestore_emulator.storage.snapshots import Snapshots
from firestore_emulator.wire.rest import read_body
from firestore_emulator.wire.rest_messages import object_of
from firestore_emulator.wire.seeds import writes_of


def snapshots_routes(engine: Engine, databases: Databases, admin: str) -> list[Route]:
    """`admin` is the path of a project."""
    snapshots = Snapshots(engine)

    async def listed(request: Request) -> Response:
        return JSONResponse({"snapshots": snapshots.names(request.path_params["project"])})

    async def save(request: Request) -> Response:
        return JSONResponse({"documents": snapshots.save(**_named(request))})

    async def restore(request: Request) -> Response:
        changed = snapshots.restore(**_named(request), with_triggers=_with_triggers(request))
        await engine.settled()
        return JSONResponse({"changed": changed})

    async def forget(request: Request) -> Response:
        snapshots.forget(**_named(request))
        return JSONResponse({})

    async def seed(request: Request) -> Response:
        project, database_id = request.path_params["project"], request.path_params["database"]
        if not databases.exists(project, database_id):
            raise not_found(f"The database {database_id} does not exist for project {project}.")
        database = f"projects/{project}/databases/{database_id}"
        written = writes_of(object_of(await read_body(request)), f"{database}/documents")
        writes = [check_write(write, database) for write in written]
        check_repeated(writes)
        if writes:
            engine.store(engine.draft(writes), with_triggers=_with_triggers(request))
        await engine.settled()
        return JSONResponse({"documents": len(writes)})

    one = admin + "/snapshots/{name}"
    return [
        Route(admin + "/snapshots", listed, methods=["GET"]),
        Route(one + ":restore", restore, methods=["POST"]),
        Route(one, save, methods=["PUT"]),
        Route(one, forget, methods=["DELETE"]),
        Route(admin + "/databases/{database}:seed", seed, methods=["POST"]),
    ]


def _named(request: Request) -> dict[str, str]:
    return {"project": request.path_params["project"], "name": request.path_params["name"]}


def _with_triggers(request: Request) -> bool:
    asked = request.query_params.get("triggers", "true")
    if asked not in ("true", "false"):
        raise invalid_argument("triggers must be true or false.")
    return asked == "true"
