"""Databases over HTTP: listed, created and deleted.

GET    /emulator/v1/databases                                        those that hold documents, of all projects
GET    /emulator/v1/projects/{project}/databases                     {"databases": [{"name": ...}]}
POST   /emulator/v1/projects/{project}/databases?databaseId={id}     the new database
DELETE /emulator/v1/projects/{project}/databases/{id}                with all of its documents
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from firestore_emulator.storage.databases import Databases
from firestore_emulator.storage.engine import Engine


def databases_routes(engine: Engine, databases: Databases, admin: str) -> list[Route]:
    """`admin` is the path of a project."""

    async def listed(request: Request) -> Response:
        project = request.path_params["project"]
        return JSONResponse({"databases": [_shown(project, one) for one in databases.of(project)]})

    async def in_use(request: Request) -> Response:
        return JSONResponse({"databases": [{"name": name} for name in databases.in_use()]})

    async def create(request: Request) -> Response:
        project, database_id = request.path_params["project"], request.query_params.get("databaseId", "")
        databases.create(project, database_id)
        await engine.settled()
        return JSONResponse(_shown(project, database_id))

    async def delete(request: Request) -> Response:
        databases.delete(request.path_params["project"], request.path_params["database"])
        await engine.settled()
        return JSONResponse({})

    return [
        Route("/emulator/v1/databases", in_use, methods=["GET"]),
        Route(admin + "/databases", listed, methods=["GET"]),
        Route(admin + "/databases", create, methods=["POST"]),
        Route(admin + "/databases/{database}", delete, methods=["DELETE"]),
    ]


def _shown(project: str, database_id: str) -> dict[str, str]:
    return {"name": f"projects/{project}/databases/{database_id}"}
