"""WebChannel's requests (version 8 of its protocol), as the web SDK makes them in a browser:

POST  no SID                      open a session, with its first messages
POST  SID, RID, AID               more messages; the answer says whether a back channel is open, and how far it is
GET   SID, AID, TYPE=xmlhttp      a back channel; CI=1 asks for one that ends with its first answer
any   SID, TYPE=terminate         the client is gone
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from firestore_emulator.wire.rest import read_body
from firestore_emulator.wire.webchannel import OutOfTurn, Session, WebChannels, framed

VERSION, SERVER_VERSION, KEEP_ALIVE_MILLIS = 8, 12, 30_000
LIVE = {"cache-control": "private, max-age=0", "x-content-type-options": "nosniff"}


def channel(channels: WebChannels, method: str) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of one method."""

    async def answer(request: Request) -> Response:
        query = request.query_params
        session_id = query.get("SID")
        if session_id is None:
            if request.method != "POST":
                return _refused("a session is opened by a POST")
            return await _opened(channels, method, request)
        session = channels.find(session_id)
        if session is None:
            return _refused("Unknown SID")
        if query.get("TYPE") == "terminate":
            session.end()
            return PlainTextResponse("")
        if request.method == "POST":
            return await _taken(session, request)
        told = session.told(_number(query, "AID"), once=query.get("CI") == "1")
        return StreamingResponse(told, headers=LIVE, media_type="text/plain")

    return answer


async def _opened(channels: WebChannels, method: str, request: Request) -> Response:
    form = await _form(request)
    if (refusal := _fault_in(form)) is not None:
        return _refused(refusal)
    session = channels.open(method, _headers(request.query_params.get("$httpHeaders") or form.get("headers", "")))
    session.take(_number(form, "ofs"), _messages(form))
    hello = [[0, ["c", session.id, "", VERSION, SERVER_VERSION, KEEP_ALIVE_MILLIS]]]
    return _text(json.dumps(hello, separators=(",", ":")))


async def _taken(session: Session, request: Request) -> Response:
    form = await _form(request)
    if (refusal := _fault_in(form)) is not None:
        return _refused(refusal)
    session.acknowledge(_number(request.query_params, "AID"))
    try:
        session.take(_number(form, "ofs"), _messages(form))
    except OutOfTurn as error:
        return _refused(str(error))
    return _text(f"[{int(session.is_heard)},{session.last_told},{session.kept_bytes}]")


async def _form(request: Request) -> dict[str, str]:
    return dict(parse_qsl((await read_body(request)).decode(errors="replace"), keep_blank_values=True))


def _fault_in(form: Mapping[str, str]) -> str | None:
    missing = [f"req{index}___data__" for index in range(_number(form, "count")) if f"req{index}___data__" not in form]
    return f"the body lacks {missing[0]}" if missing else None


def _messages(form: Mapping[str, str]) -> list[str]:
    return [form[f"req{index}___data__"] for index in range(_number(form, "count"))]


def _number(values: Mapping[str, str], name: str) -> int:
    text = values.get(name, "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _headers(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.split("\r\n") if ":" in line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _text(content: str) -> Response:
    return PlainTextResponse(framed(content))


def _refused(reason: str) -> Response:
    return PlainTextResponse(reason, 400)
