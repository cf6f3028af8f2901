"""A handler in any language: what its service is sent, what its answers do, and what its errors do."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from firestore_emulator.virtual_time import VirtualClock
from firestore_outbox.handlers.registration import BadHandlers
from firestore_outbox.handlers.remote import RemoteHandler, registrations
from firestore_outbox.settings import BadSettings, Settings
from tests.calm import Calm, simulate
from tests.inbound.test_receive import comes_in

SECRET = "shared with the service"
Service = Callable[[dict[str, Any]], Awaitable[Response]]


def handled_by(service: Service, calls: list[httpx.Headers], kinds: str = "conversation") -> Any:
    """The handlers of a worker whose OUTBOX_HANDLER_URL is this service."""

    async def endpoint(request: Request) -> Response:
        body = await request.body()
        calls.append(httpx.Headers(dict(request.headers)))
        signature = hmac.new(SECRET.encode(), body, "sha256").hexdigest()
        assert request.headers["outbox-signature"] == f"sha256={signature}"
        return await service(json.loads(body))

    async def token() -> str:
        return "a-token"

    app = Starlette(routes=[Route("/hook", endpoint, methods=["POST"])])

    def clock() -> Any:
        return VirtualClock(asyncio.get_running_loop())()  # type: ignore[arg-type]  # the loop of the simulation

    handler = RemoteHandler("http://service/hook", SECRET, clock, token, httpx.ASGITransport(app))
    return registrations(kinds, handler)


def texts(calm: Calm) -> list[str]:
    return [data["parts"][0]["text"] for data in calm.world.truth.collection("outbox").values()]


def test_the_service_gets_what_is_new_signed_and_its_replies_are_sent() -> None:
    asked: list[dict[str, Any]] = []
    calls: list[httpx.Headers] = []

    async def service(body: dict[str, Any]) -> Response:
        asked.append(body)
        return JSONResponse({"replies": [{"text": f"{len(body['messages'])} messages"}]})

    async def body(calm: Calm) -> list[str]:
        await calm.account()
        await comes_in(calm, "+491")
        await comes_in(calm, "+491")
        await calm.until(lambda: calm.statuses()["sent"] == 1)
        return texts(calm)

    assert simulate(body, handlers=handled_by(service, calls)) == ["2 messages"]
    assert (asked[0]["kind"], asked[0]["key"]) == ("conversation", "shop__+491")
    assert [message["text"] for message in asked[0]["messages"]] == ["a question", "a question"]
    assert calls[0]["authorization"] == "Bearer a-token"


def test_an_answer_of_503_is_tried_again_and_sends_nothing_twice() -> None:
    answers = iter([503, 429, 200])

    async def service(body: dict[str, Any]) -> Response:
        return JSONResponse({"replies": [{"text": "once"}]}, status_code=next(answers))

    async def body(calm: Calm) -> list[str]:
        await calm.account()
        await comes_in(calm, "+491")
        await asyncio.sleep(60)
        return texts(calm)

    assert simulate(body, handlers=handled_by(service, [])) == ["once"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Response(status_code=422), "422"),
        (Response(b"<html>"), "JSON object"),
        (JSONResponse([]), "JSON object"),
        (JSONResponse({"replies": "no list"}), "replies must be a list"),
        (JSONResponse({"replies": [{}]}), "either a text or parts"),
        (JSONResponse({"send": [{"to": "+491"}]}), "accountId"),
        (JSONResponse({"send": [{"accountId": "shop", "to": "+491", "text": "x", "at": "noon"}]}), "offset"),
    ],
)
def test_an_answer_that_no_retry_repairs_is_a_dead_letter(answer: Response, words: str) -> None:
    async def service(body: dict[str, Any]) -> Response:
        return answer

    async def body(calm: Calm) -> list[str]:
        await calm.account()
        await comes_in(calm, "+491")
        await asyncio.sleep(60)
        return [job["error"] for job in calm.world.truth.collection("jobs").values()]

    (error,) = simulate(body, handlers=handled_by(service, []))
    assert words in error


def test_events_of_a_kind_of_your_own_reach_the_service() -> None:
    seen: list[Any] = []

    async def service(body: dict[str, Any]) -> Response:
        seen.append((body["key"], [event["data"] for event in body["events"]]))
        return Response(status_code=204)

    async def body(calm: Calm) -> None:
        await calm.world.functions[0].system.events.event("nextup", "e-1", {"page": 7}, "ann")
        await asyncio.sleep(60)

    simulate(body, handlers=handled_by(service, [], "nextup"))
    assert seen == [("ann", [{"page": 7}])]


def test_a_kind_has_one_handler() -> None:
    with pytest.raises(BadHandlers, match="already"):
        registrations("conversation", None, known={"inbound"})  # type: ignore[arg-type]  # it is not called
    with pytest.raises(BadHandlers, match="'outbox' is no kind"):
        registrations("outbox", None)  # type: ignore[arg-type]  # the same


def test_an_address_without_a_secret_is_refused() -> None:
    with pytest.raises(BadSettings, match="HANDLER_SECRET"):
        Settings.from_environment({"OUTBOX_HANDLER_URL": "https://service.example/hook"})
