"""What leaves for Meta, part by part, and what each kind of answer means. Over sockets to the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from firestore_outbox.messages.model import TemplatePart
from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import FixedCredentials
from firestore_outbox.providers.outcome import (
    AuthFailed,
    Capability,
    Scope,
    Sent,
    Throttled,
    Unknown,
)
from firestore_outbox.providers.protocol import MediaMode
from tests.providers.support import LIMIT, message, text
from tests.providers.whatsapp_cloud.support import NAME, SECRETS, TOKEN, Office, media

# --- what is sent


async def test_a_text_leaves_as_meta_wants_it_with_our_mark_in_it(acme: Office) -> None:
    outcome = await acme.call(message(parts=(text("hi there"),)))
    assert isinstance(outcome, Sent)
    assert outcome.provider_message_id.startswith("wamid.")
    (request,) = acme.seen.requests
    assert request.url.path == "/whatsapp_cloud/v23.0/acme/messages"
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert acme.posted == [
        {
            "messaging_product": "whatsapp",
            "recipient_type": "individual",
            "to": "4915112345",
            "type": "text",
            "text": {"body": "hi there", "preview_url": False},
            "biz_opaque_callback_data": "request-1:0:1",
        }
    ]
    (call,) = await acme.truth()
    assert (call["requestId"], call["accountId"], call["accepted"]) == ("request-1", "acme", True)


async def test_a_template_names_its_language_and_fills_its_placeholders_in_order(acme: Office) -> None:
    part = TemplatePart(type="template", name="reminder", language="en_US", params=("Ann", "10:30"))
    assert isinstance(await acme.call(message(parts=(part,))), Sent)
    assert (acme.posted[0]["type"], acme.posted[0]["template"]) == (
        "template",
        {
            "name": "reminder",
            "language": {"code": "en_US"},
            "components": [
                {"type": "body", "parameters": [{"type": "text", "text": "Ann"}, {"type": "text", "text": "10:30"}]}
            ],
        },
    )


async def test_a_template_without_placeholders_has_no_components(acme: Office) -> None:
    part = TemplatePart(type="template", name="hello", language="de", params=())
    assert isinstance(await acme.call(message(parts=(part,))), Sent)
    assert acme.posted[0]["template"] == {"name": "hello", "language": {"code": "de"}}


async def test_values_for_header_and_buttons_become_components_of_the_template(acme: Office) -> None:
    params = {"header": ["Ann"], "body": ["10:30"], "buttons": ["", "t-1"]}
    assert isinstance(await acme.call(message(parts=(template(params),))), Sent)
    assert acme.posted[0]["template"]["components"] == [
        {"type": "header", "parameters": [{"type": "text", "text": "Ann"}]},
        {"type": "body", "parameters": [{"type": "text", "text": "10:30"}]},
        {"type": "button", "sub_type": "url", "index": "1", "parameters": [{"type": "text", "text": "t-1"}]},
    ]


@pytest.mark.parametrize(
    ("header", "parameter"),
    [
        ({"image": "https://example.com/a.png"}, {"type": "image", "image": {"link": "https://example.com/a.png"}}),
        ({"document": "4711"}, {"type": "document", "document": {"id": "4711"}}),
    ],
)
async def test_a_file_in_the_header_goes_by_its_link_or_its_id(
    acme: Office, header: dict[str, str], parameter: dict[str, object]
) -> None:
    assert isinstance(await acme.call(message(parts=(template({"header": header}),))), Sent)
    assert acme.posted[0]["template"]["components"] == [{"type": "header", "parameters": [parameter]}]


def template(params: Mapping[str, object]) -> TemplatePart:
    return TemplatePart.model_validate({"type": "template", "name": "reminder", "language": "en", "params": params})


async def test_parts_go_one_by_one_and_the_last_ones_id_is_kept(acme: Office) -> None:
    await acme.add_file()
    parts = (text("one"), media(), text("three"))
    outcome = await acme.call(message(parts=parts, parts_sent=1))
    assert isinstance(outcome, Sent)
    assert [it["biz_opaque_callback_data"] for it in acme.posted] == ["request-1:1:3", "request-1:2:3"]
    kept = acme.simulator.core.record.calls()[-1].provider_message_id
    assert outcome.provider_message_id == kept


# --- whether it was processed


async def test_a_500_without_a_code_is_unknown_whether_it_was_accepted_or_not(acme: Office) -> None:
    await acme.order(acceptedErrorRate=1)
    assert isinstance(await acme.call(message("request-1")), Unknown)
    await acme.order(errorRate=1, errorCode="internal")
    assert isinstance(await acme.call(message("request-2")), Unknown)
    assert [it["accepted"] for it in await acme.truth()] == [True, False]


@pytest.mark.parametrize("scope", list(Scope))
async def test_a_throttle_is_reported_in_metas_code_for_its_scope(acme: Office, scope: Scope) -> None:
    await acme.order(throttleRate=1, throttleScope=scope.value)
    outcome = await acme.call(message())
    assert isinstance(outcome, Throttled)
    assert outcome.scope is scope


@pytest.mark.parametrize(("attempts", "seconds"), [(0, 4), (1, 4), (2, 16), (3, 64), (4, 256), (5, 256), (500, 256)])
async def test_a_recipient_who_got_too_much_is_left_alone_for_longer_each_time(
    acme: Office, attempts: int, seconds: int
) -> None:
    await acme.order(throttleRate=1, throttleScope="recipient")
    outcome = await acme.call(replace(message(), attempts=attempts))
    assert isinstance(outcome, Throttled)
    assert outcome.retry_after == timedelta(seconds=seconds)


async def test_a_refusal_in_the_middle_says_how_many_parts_were_accepted(acme: Office) -> None:
    await acme.add_file()
    await acme.order(uploadErrorRate=1, apiCode="130429")
    outcome = await acme.call(message(parts=(text("one"), media())))
    assert isinstance(outcome, Throttled)
    assert outcome.parts_sent == 1


# --- credentials


@pytest.mark.parametrize("missing", ["token", "phoneNumberId"])
async def test_an_account_without_its_credentials_is_an_auth_failure_and_nothing_is_called(missing: str) -> None:
    secrets = {name: value for name, value in SECRETS.items() if name != missing}
    adapters = providers(ProviderSettings(), credentials=FixedCredentials({"acme": secrets}))
    outcome = await adapters.send(NAME, message(), limit=LIMIT)
    assert isinstance(outcome, AuthFailed)
    assert missing in outcome.detail


async def test_blanks_around_a_token_that_was_copied_do_no_harm(acme: Office) -> None:
    settings = ProviderSettings(whatsapp_cloud_url=f"{acme.simulator.url}/whatsapp_cloud/v23.0")
    adapters = providers(settings, credentials=FixedCredentials({"acme": SECRETS | {"token": f" {TOKEN} "}}))
    assert isinstance(await adapters.send(NAME, message(), limit=LIMIT), Sent)
    await adapters.close()


async def test_revoked_credentials_park_that_account_alone(acme: Office) -> None:
    await acme.control.put("/_sim/accounts/acme", json={"credentials": "revoked"})
    assert isinstance(await acme.call(message()), AuthFailed)
    assert isinstance(await acme.call(message(account_id="other")), Sent)


async def test_a_number_of_its_own_is_called_in_place_of_the_accounts_id(acme: Office) -> None:
    settings = ProviderSettings(whatsapp_cloud_url=f"{acme.simulator.url}/whatsapp_cloud/v23.0")
    credentials = FixedCredentials({"acme": SECRETS | {"phoneNumberId": "106540352242922"}})
    adapters = providers(settings, credentials=credentials)
    assert isinstance(await adapters.send(NAME, message(), limit=LIMIT), Sent)
    await adapters.close()
    assert [it["accountId"] for it in await acme.truth()] == ["106540352242922"]


async def test_credentials_that_work_are_known_by_the_number_they_send_as(acme: Office) -> None:
    checked = await acme.check()
    assert checked.works
    assert checked.detail == "sends as +1 555 0100 (Simulated acme)"
    assert await acme.truth() == []  # harmless
    (request,) = acme.seen.requests
    assert request.method == "GET"


@pytest.mark.parametrize("missing", ["token", "phoneNumberId"])
async def test_credentials_that_are_missing_are_named(acme: Office, missing: str) -> None:
    checked = await acme.check(**{missing: ""})
    assert not checked.works
    assert missing in checked.detail


async def test_wrong_credentials_are_reported_with_what_to_correct_and_without_the_token(acme: Office) -> None:
    await acme.control.put("/_sim/accounts/acme", json={"credentials": "revoked"})
    checked = await acme.check()
    assert not checked.works
    assert "make a new one" in checked.detail
    assert TOKEN not in checked.detail


async def test_the_profile_promises_what_meta_promises_and_no_more(acme: Office) -> None:
    profile = acme.providers[NAME].profile
    assert profile.capability == Capability(resend_safe=False, echoes_request_id=True)
    assert profile.media is MediaMode.UPLOAD
    assert profile.part_types == {"text", "media", "template"}
    assert profile.throttle_scopes == set(Scope)
    assert [secret.name for secret in profile.secrets if secret.required] == ["phoneNumberId", "token", "webhookSecret"]
