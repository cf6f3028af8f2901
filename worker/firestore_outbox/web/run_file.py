"""The file of a run's targets, sent while it is read: to callers of the HTTP API, and from the console."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse

CSV = "targets.csv"
TARGETS = ("targets", CSV)
"""What stands behind a run's id in a path."""


def csv_file(lines: AsyncIterator[str]) -> Response:
    headers = {"Content-Disposition": 'attachment; filename="run.csv"', "X-Content-Type-Options": "nosniff"}
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)
