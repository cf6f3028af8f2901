"""The meters of a project over HTTP.

GET    /emulator/v1/projects/{project}:billing       operations as Google bills them; `?recent=N` adds the last N calls
DELETE /emulator/v1/projects/{project}:billing       from zero again
GET    /emulator/v1/projects/{project}:hotSpots      the busiest documents and index ranges; `?most=N`, 20 by default
POST   /emulator/v1/projects/{project}:hotSpots      starts counting; `?windowSeconds=N`, 60 by default
DELETE /emulator/v1/projects/{project}:hotSpots      forgets what was counted in this project
"""

from __future__ import annotations

import math
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from firestore_emulator.meters.hot_spots import WINDOW_SECONDS
from firestore_emulator.rpc.errors import invalid_argument
from firestore_emulator.storage.engine import Engine


def meters_routes(engine: Engine, admin: str) -> list[Route]:
    """`admin` is the path of a project."""

    async def bill(request: Request) -> Response:
        project, recent = request.path_params["project"], _number(request, "recent", 0)
        found = engine.billing.bill(project)
        answer = {"reads": found.reads, "writes": found.writes, "deletes": found.deletes}
        calls = [asdict(line) for line in found.lines]
        last = [one._asdict() for one in engine.billing.recent(project)[-recent:]] if recent else []
        return JSONResponse(answer | {"lines": calls} | ({"recent": last} if recent else {}))

    async def reset_bill(request: Request) -> Response:
        engine.billing.reset(request.path_params["project"])
        return JSONResponse({})

    async def hot_spots(request: Request) -> Response:
        found = engine.hot_spots.report(request.path_params["project"], _number(request, "most", 20))
        return JSONResponse(asdict(found))

    async def start_hot_spots(request: Request) -> Response:
        engine.hot_spots.start(_seconds(request, "windowSeconds", WINDOW_SECONDS))
        return JSONResponse({})

    async def reset_hot_spots(request: Request) -> Response:
        engine.hot_spots.reset(request.path_params["project"])
        return JSONResponse({})

    return [
        Route(admin + ":billing", bill, methods=["GET"]),
        Route(admin + ":billing", reset_bill, methods=["DELETE"]),
        Route(admin + ":hotSpots", hot_spots, methods=["GET"]),
        Route(admin + ":hotSpots", start_hot_spots, methods=["POST"]),
        Route(admin + ":hotSpots", reset_hot_spots, methods=["DELETE"]),
    ]


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise invalid_argument(f"{name} must be a whole number.")
    return int(text)


def _seconds(request: Request, name: str, default: float) -> float:
    try:
        seconds = float(request.query_params.get(name, default))
    except ValueError:
        seconds = math.nan
    if not 0.001 <= seconds <= 86_400:
        raise invalid_argument(f"{name} must be a number of seconds, up to a day.")
    return seconds
