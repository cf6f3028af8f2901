"""Meta's WhatsApp Cloud API, under `/whatsapp_cloud/v23.0`: sending, uploading files, asking for a number.

The phone number id in the path is taken for the account's id, so each account has a number of its own without anybody
setting one up. Answers, refusals and webhooks are worded in whatsapp_cloud_words.py.

Files are kept for 30 days; a message that names one which is unknown or expired is refused with 131053.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from firestore_outbox.local.simulators.api import Answer, Asked, Refusal, Simulator
from firestore_outbox.local.simulators.core import Cut
from firestore_outbox.local.simulators.files import File
from firestore_outbox.local.simulators.multipart import BadForm, read_form
from firestore_outbox.local.simulators.own import bearer
from firestore_outbox.local.simulators.whatsapp_cloud_words import API as API
from firestore_outbox.local.simulators.whatsapp_cloud_words import NAME as NAME
from firestore_outbox.local.simulators.whatsapp_cloud_words import fault_answer

FILES_LAST = timedelta(days=30)
LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024
LONGEST_ECHO = 512
MEDIA_KINDS = ("image", "video", "audio", "document", "sticker")
WITHOUT_CAPTION = ("audio", "sticker")
FILE_TYPES: Mapping[str, int] = {
    **dict.fromkeys(("image/jpeg", "image/png"), 5),
    "image/webp": 1,
    **dict.fromkeys(("audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg"), 16),
    **dict.fromkeys(("video/mp4", "video/3gpp", "video/3gp"), 16),
    **dict.fromkeys(("text/plain", "application/pdf", "application/msword"), 100),
    **dict.fromkeys(("application/vnd.ms-excel", "application/vnd.ms-powerpoint"), 100),
    **dict.fromkeys(
        (
            f"application/vnd.openxmlformats-officedocument.{kind}"
            for kind in ("spreadsheetml.sheet", "wordprocessingml.document", "presentationml.presentation")
        ),
        100,
    ),
}
"""What may be uploaded, and up to how many megabytes."""


def routes(simulator: Simulator) -> list[Route]:
    endpoint = _WhatsAppCloud(simulator)
    return [
        Route("/whatsapp_cloud/{version}/{account_id}/messages", endpoint.messages, methods=["POST"]),
        Route("/whatsapp_cloud/{version}/{account_id}/media", endpoint.upload, methods=["POST"]),
        Route("/whatsapp_cloud/{version}/{account_id}", endpoint.number),
    ]


class _WhatsAppCloud:
    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self._core = simulator.core

    async def messages(self, request: Request) -> Response:
        account_id = request.path_params["account_id"]
        body = await request.body()
        asked = read_message(
            account_id,
            body,
            is_authorized=self._is_authorized(request),
            knows=lambda file: self._core.has_file(account_id, file),
            is_window_closed=self._core.faults.windowClosed,
        )
        return await self._simulator.carry_out(request, self._core.take(asked, API))

    async def upload(self, request: Request) -> Response:
        account_id = request.path_params["account_id"]
        body = await request.body()
        verdict = self._core.take_file(account_id, is_authorized=self._is_authorized(request))
        ordered = None if verdict.refusal is None else API.refused(verdict.refusal)
        answer = self._stored(account_id, request.headers.get("content-type", ""), body, ordered)
        return await self._simulator.answer(request, Cut() if verdict.is_lost else answer, verdict.latency)

    def _stored(self, account_id: str, content_type: str, body: bytes, ordered: Answer | None) -> Answer:
        """`ordered` is a refusal that was ordered, whatever comes."""
        try:
            fields, file = read_form(content_type, body)
        except BadForm as error:
            return ordered or fault_answer(100, str(error))
        mime_type = fields.get("type", file.mime_type)
        uploaded = File.of(file.content, account_id=account_id, mime_type=mime_type, at=self._core.clock())
        refused = ordered or _upload_fault(fields, mime_type, uploaded.size_bytes)
        if refused is None:
            lasts = self._core.faults.handleSeconds or int(FILES_LAST.total_seconds())
            uploaded = uploaded.taken(str(self._core.random.randrange(10**15, 10**16)), lasts_seconds=lasts)
        self._core.files.add(uploaded)
        return refused or Answer(status=200, body={"id": uploaded.handle})

    async def number(self, request: Request) -> Response:
        """`GET /{PHONE_NUMBER_ID}`: harmless, and only for callers that may use the number; `GET /{MEDIA_ID}`, too."""
        account_id = request.path_params["account_id"]
        if not self._is_authorized(request):
            refused = fault_answer(190, None)
            return JSONResponse(refused.body, refused.status)
        if self._simulator.inbound_files.has(account_id):
            url = request.url.replace(path=request.url.path.replace(f"/{account_id}", f"/files/{account_id}"))
            return JSONResponse({"messaging_product": "whatsapp", "id": account_id, "url": str(url)})
        number = {"id": account_id, "verified_name": f"Simulated {account_id}", "quality_rating": "GREEN"}
        return JSONResponse(number | {"display_phone_number": "+1 555 0100"})

    def _is_authorized(self, request: Request) -> bool:
        is_revoked = self._core.account(request.path_params["account_id"]).credentials == "revoked"
        return bool(bearer(request.headers.get("authorization", ""))) and not is_revoked


def _upload_fault(fields: Mapping[str, str], mime_type: str, size_bytes: int) -> Answer | None:
    largest = FILE_TYPES.get(mime_type.partition(";")[0].strip())
    if fields.get("messaging_product") != "whatsapp":
        return fault_answer(100, "The parameter messaging_product is required.")
    if largest is None:
        return fault_answer(100, "Param file must be a file of a supported type.")
    if size_bytes > largest * 1_000_000:
        return fault_answer(131053, "The file is too large.")
    return None


# --- a message, read


def read_message(
    account_id: str,
    body: bytes,
    *,
    is_authorized: bool,
    knows: Callable[[str], bool],
    is_window_closed: bool = False,
) -> Asked:
    try:
        raw = json.loads(body)
    except (ValueError, RecursionError):
        raw = None
    fields: dict[str, Any] = raw if isinstance(raw, dict) else {}
    echo = _text(fields, "biz_opaque_callback_data")
    request_id, part = _correlated(echo)
    fault = _fault(fields, knows)
    if fault is None and is_window_closed and fields.get("type") != "template":
        fault = 131047, "More than 24 hours have passed since the recipient last replied."
    return Asked(
        provider=NAME,
        account_id=account_id,
        to=_text(fields, "to"),
        request_id=request_id,
        part=part,
        is_authorized=is_authorized,
        echo=echo or None,
        # Without a token the answer says nothing of other faults.
        refusal=Refusal(error="invalid_message", detail=fault[1], api_code=str(fault[0]))
        if fault and is_authorized
        else None,
    )


def _correlated(echo: str) -> tuple[str, int]:
    """The request's id and the part, if the mark has our form: `id:part:parts`."""
    request_id, _, rest = echo.partition(":")
    part = rest.partition(":")[0]
    return request_id, int(part) if part.isdigit() else 0


def _fault(fields: Mapping[str, Any], knows: Callable[[str], bool]) -> tuple[int, str] | None:
    """Meta's code and words for what is wrong with a message."""
    if fields.get("messaging_product") != "whatsapp":
        return 100, "The parameter messaging_product is required."
    if not _text(fields, "to"):
        return 131008, "The parameter to is required."
    if len(_text(fields, "biz_opaque_callback_data")) > LONGEST_ECHO:
        return 131009, f"biz_opaque_callback_data has at most {LONGEST_ECHO} characters."
    kind = fields.get("type")
    content = fields.get(kind) if isinstance(kind, str) else None
    if not isinstance(content, dict):
        return 131008, "The parameter type is required, and an object of that name."
    match kind:
        case "text":
            return _text_fault(content)
        case "template":
            return _template_fault(content)
        case _ if kind in MEDIA_KINDS:
            return _media_fault(str(kind), content, knows)
        case _:
            return 131051, "Message type is currently not supported."


def _text_fault(content: Mapping[str, Any]) -> tuple[int, str] | None:
    if not _text(content, "body"):
        return 131008, "The parameter text['body'] is required."
    if len(_text(content, "body")) > LONGEST_TEXT:
        return 100, f"Param text['body'] must be at most {LONGEST_TEXT} characters long."
    return None


def _template_fault(content: Mapping[str, Any]) -> tuple[int, str] | None:
    language = content.get("language")
    if not _text(content, "name") or not isinstance(language, dict) or not _text(language, "code"):
        return 131008, "A template has a name and a language."
    if not all(_is_component(component) for component in _list(content, "components")):
        return 132012, "A parameter has not the form that the template wants."
    return None


def _is_component(component: Any) -> bool:
    parameters = _list(component, "parameters")
    match _text(component, "type"):
        case "header":
            return all(_text(one, "text") or _is_file(one) for one in parameters)
        case "body":
            return all(_text(one, "text") for one in parameters)
        case "button":
            is_placed = _text(component, "sub_type") == "url" and _text(component, "index").isdigit()
            return is_placed and len(parameters) == 1 and bool(_text(parameters[0], "text"))
        case _:
            return False


def _is_file(parameter: Any) -> bool:
    kind = _text(parameter, "type")
    file = parameter.get(kind) if kind in ("image", "video", "document") else None
    return bool(_text(file, "link")) != bool(_text(file, "id"))


def _media_fault(kind: str, content: Mapping[str, Any], knows: Callable[[str], bool]) -> tuple[int, str] | None:
    caption = content.get("caption")
    if caption is not None and (kind in WITHOUT_CAPTION or len(str(caption)) > LONGEST_CAPTION):
        return 100, f"Param {kind}['caption'] is not allowed."
    if "filename" in content and kind != "document":
        return 100, f"Param {kind}['filename'] is not allowed."
    if not knows(_text(content, "id")):
        return 131053, "The media id is unknown, or has expired."
    return None


def _text(fields: Any, name: str) -> str:
    value = fields.get(name) if isinstance(fields, dict) else None
    return value if isinstance(value, str) else ""


def _list(fields: Any, name: str) -> list[Any]:
    value = fields.get(name) if isinstance(fields, dict) else None
    return value if isinstance(value, list) else []
