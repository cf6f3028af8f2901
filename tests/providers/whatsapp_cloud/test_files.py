"""Files on their way to Meta: uploaded once, named by the id that Meta gave, and uploaded again when it forgot it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest

from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import FixedCredentials
from firestore_outbox.providers.http import Streamed
from firestore_outbox.providers.media import MediaStream, Uploaded
from firestore_outbox.providers.outcome import AuthFailed, ErrorCode, Rejected, Sent, Throttled, Unknown
from tests.providers.support import LIMIT, message, text
from tests.providers.whatsapp_cloud.support import NAME, PICTURE, SECRETS, Office, media


@pytest.mark.parametrize(
    ("mime_type", "kind", "extras"),
    [
        ("image/jpeg", "image", {"caption": "look"}),
        ("image/png", "image", {"caption": "look"}),
        ("image/webp", "sticker", {}),
        ("video/mp4", "video", {"caption": "look"}),
        ("video/3gpp", "video", {}),
        ("audio/mpeg", "audio", {}),
        ("audio/ogg; codecs=opus", "audio", {}),
        ("application/pdf", "document", {"caption": "look", "filename": "offer.pdf"}),
        ("text/plain", "document", {"filename": "notes.txt"}),
    ],
)
async def test_a_file_is_uploaded_and_named_by_the_id_that_meta_gave_it(
    acme: Office, mime_type: str, kind: str, extras: dict[str, str]
) -> None:
    await acme.add_file()
    part = media(mime_type=mime_type, **extras)
    outcome = await acme.call(message(parts=(part,)))
    assert isinstance(outcome, Sent), outcome
    (upload,) = await acme.truth("media")
    assert (upload["sha256"], upload["bytes"]) == (sha256(PICTURE).hexdigest(), len(PICTURE))
    assert (upload["mimeType"], upload["accountId"]) == (mime_type, "acme")
    assert acme.posted[0]["type"] == kind
    assert acme.posted[0][kind] == {"id": upload["handle"], **extras}


async def test_a_filename_goes_with_documents_only(acme: Office) -> None:
    await acme.add_file()
    assert isinstance(await acme.call(message(parts=(media(filename="photo.png"),))), Sent)
    assert set(acme.posted[0]["image"]) == {"id"}


@pytest.mark.parametrize("mime_type", ["audio/mpeg", "image/webp"])
async def test_a_caption_that_whatsapp_has_no_place_for_is_refused_before_anything_is_sent(
    acme: Office, mime_type: str
) -> None:
    await acme.add_file()
    outcome = await acme.call(message(parts=(text("first"), media(mime_type=mime_type, caption="look"))))
    assert isinstance(outcome, Rejected)
    assert (outcome.code, outcome.parts_sent) == (ErrorCode.INVALID_MESSAGE, 0)
    assert "send it as a text part" in outcome.detail
    assert acme.seen.requests == []


async def test_a_file_is_uploaded_once_for_many_messages_and_once_for_each_account(acme: Office) -> None:
    await acme.add_file()
    await acme.add_file(account_id="other")
    for number, account in enumerate(["acme", "acme", "other", "acme"]):
        outcome = await acme.call(message(f"request-{number}", account_id=account, parts=(media(),)))
        assert isinstance(outcome, Sent)
    assert [it["accountId"] for it in await acme.truth("media")] == ["acme", "other"]


# --- files that are refused


async def test_a_file_that_meta_forgot_is_uploaded_again_and_the_message_sent_once(acme: Office) -> None:
    await acme.add_file()
    assert isinstance(await acme.call(message("request-1", parts=(media(),))), Sent)
    (first,) = await acme.truth("media")
    acme.simulator.core.files.lose("acme", first["handle"])
    assert isinstance(await acme.call(message("request-2", parts=(media(),))), Sent)
    assert len(await acme.truth("media")) == 2
    assert [(it["requestId"], it["accepted"]) for it in await acme.truth()] == [
        ("request-1", True),
        ("request-2", False),
        ("request-2", True),
    ]


async def test_a_file_that_is_refused_twice_is_refused_for_good(acme: Office) -> None:
    await acme.add_file()
    await acme.order(handleLostRate=1)
    outcome = await acme.call(message(parts=(media(),)))
    assert isinstance(outcome, Rejected)
    assert outcome.code is ErrorCode.MEDIA_MISSING
    assert len(await acme.truth("media")) == 2


async def test_a_file_of_a_type_that_meta_does_not_take_is_rejected_and_nothing_is_sent(acme: Office) -> None:
    await acme.add_file()
    outcome = await acme.call(message(parts=(media(mime_type="application/zip"),)))
    assert isinstance(outcome, Rejected)
    assert outcome.code is ErrorCode.INVALID_MESSAGE
    assert acme.posted == []


async def test_an_upload_whose_answer_is_lost_is_no_doubt_about_the_message(acme: Office) -> None:
    await acme.add_file()
    await acme.order(uploadLostRate=1)
    outcome = await acme.call(message(parts=(media(),)))
    assert not isinstance(outcome, Sent | Unknown | Rejected)
    assert acme.posted == []


@pytest.mark.parametrize(
    ("code", "expected"), [("190", AuthFailed), ("130429", Throttled), ("131053", Rejected), ("100", Rejected)]
)
async def test_an_upload_is_refused_by_the_same_codes(acme: Office, code: str, expected: type) -> None:
    await acme.add_file()
    await acme.order(uploadErrorRate=1, apiCode=code)
    assert isinstance(await acme.call(message(parts=(media(),))), expected)
    assert acme.posted == []


async def test_a_handle_is_trusted_for_a_day_less_than_meta_keeps_the_file(acme: Office) -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    handed: list[object] = []

    class FileDelivery:
        async def ready(self, *args: object, limit: timedelta) -> object:
            upload = args[-1]
            file = MediaStream(media_id="m", mime_type="image/png", filename="f.png", body=Streamed.of(PICTURE))
            assert callable(upload)
            handed.append(await upload(file, limit))
            return Rejected(code=ErrorCode.MEDIA_MISSING, detail="enough was seen")

        async def forget(self, *args: object) -> None: ...

    registry = providers(
        ProviderSettings(whatsapp_cloud_url=f"{acme.simulator.url}/whatsapp_cloud/v23.0"),
        credentials=FixedCredentials({"*": SECRETS}),
        media=FileDelivery(),  # type: ignore[arg-type]  # a delivery that only asks for the upload
        clock=lambda: at,
    )
    await registry.send(NAME, message(parts=(media(),)), limit=LIMIT)
    await registry.close()
    (uploaded,) = handed
    assert isinstance(uploaded, Uploaded)
    assert uploaded.expires_at == at + timedelta(days=29)
