"""One sealed part: the RFC's own vectors, and each way in which a part does not open."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.bindings._rust import openssl
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key

from firestore_outbox.messages.limits import MAX_SEALED
from firestore_outbox.sealing.envelope import (
    SUITE,
    CannotOpen,
    CannotSeal,
    Reason,
    checked_envelope,
    decoded,
    encoded,
    new_private_key,
    opened,
    private_key_of,
    public_key_of,
    seal_parts,
)
from tests.client.node import ROOT, require_node
from tests.sealing.support import TEXT

RFC_A31 = {
    "skR": "f3ce7fdae57e1a310d87f1ebbde6f328be0a99cdbcadf4d6589cf29de4b8ffd2",
    "pkR": "04fe8c19ce0905191ebc298a9245792531f26f0cece2460639e8bc39cb7f706a82"
    "6a779b4cf969b8a0e539c7f62fb3d30ad6aa8f80e30f1d128aafd68a2ce72ea0",
    "ikmE": "4270e54ffd08d79d5928020af4686d8f6b7d35dbe470265f1f5aa22816ce860e",
    "enc": "04a92719c6195d5085104f469a8b9814d5838ff72b60501e2c4466e5e67b325ac9"
    "8536d7b61a1af4b78e5b7f951c0900be863c403ce65c9bfcb9382657222d18c4",
    "info": "4f6465206f6e2061204772656369616e2055726e",
    "pt": "4265617574792069732074727574682c20747275746820626561757479",
    "aad": "436f756e742d30",
    "ct": "5ad590bb8baa577f8619db35a36311226a896e7342a6d836d8b7bcd2f20b6c7f9076ac232e3ab2523f39513434",
}
"""RFC 9180, appendix A.3.1: DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, base mode, sequence number 0."""

PRIVATE = bytes.fromhex(RFC_A31["skR"])
KEY = {"keyVersion": 1, "publicKey": public_key_of(PRIVATE)}
PLACE = {"account_id": "shop", "request_id": "request-1"}


def seal(*parts: dict[str, Any], **changes: Any) -> list[dict[str, Any]]:
    return seal_parts(parts or (TEXT,), **{**PLACE, "key": KEY, **changes})


def open_it(part: dict[str, Any], private: bytes = PRIVATE, version: int = 1, index: int = 0, **place: str) -> Any:
    where = {**PLACE, **place}
    raw = checked_envelope(part["ciphertext"], where["account_id"], where["request_id"])
    return opened(raw, private_key_of(private), version=version, index=index, **where)


def reason(*args: Any, **changes: Any) -> Reason:
    with pytest.raises(CannotOpen) as refused:
        open_it(*args, **changes)
    return refused.value.reason


# --- the standard


def test_the_vector_of_the_rfc_opens() -> None:
    """The vectors have associated data, which the library's public interface leaves to `info`: its own tests use the
    same function as this one."""
    given = {name: bytes.fromhex(value) for name, value in RFC_A31.items()}
    private = derive_private_key(int.from_bytes(given["skR"], "big"), SECP256R1())
    clear = openssl.hpke._decrypt_with_aad(SUITE, given["enc"] + given["ct"], private, given["info"], given["aad"])
    assert clear == given["pt"]
    assert decoded(public_key_of(given["skR"])) == given["pkR"]


NODE = Path(__file__).with_name("hpke.mjs")


def node(**given: Any) -> dict[str, Any]:
    result = subprocess.run(
        [require_node(), str(NODE)], input=json.dumps(given), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_the_vector_of_the_rfc_opens_and_is_made_again_in_javascript() -> None:
    answer = node(vector=RFC_A31)
    assert answer == {"pt": RFC_A31["pt"], "enc": RFC_A31["enc"], "ct": RFC_A31["ct"]}


TEMPLATE = {"type": "template", "name": "welcome", "language": "en", "params": ["Ann", '1 < 2 & "3"']}


def test_what_javascript_seals_python_opens() -> None:
    answer = node(seal={"parts": [TEXT, TEMPLATE], "accountId": "shop", "requestId": "request-1", "key": KEY})
    first, second = answer["parts"]
    assert first.keys() == {"type", "keyVersion", "ciphertext"}
    assert open_it(first) == TEXT
    assert open_it(second, index=1) == TEMPLATE


def test_what_python_seals_javascript_opens() -> None:
    (part,) = seal()
    private = {"skR": RFC_A31["skR"], "pkR": RFC_A31["pkR"]}
    answer = node(open={**private, "part": part, "accountId": "shop", "requestId": "request-1", "index": 0})
    assert answer["part"] == TEXT


# --- sealing


def test_a_file_is_not_sealed_and_keeps_its_place() -> None:
    media = {"type": "media", "mediaId": "m-1", "mimeType": "image/png"}
    first, second = seal(media, TEXT)
    assert first == media
    assert open_it(second, index=1) == TEXT


def test_the_same_text_twice_is_two_ciphertexts() -> None:
    assert seal()[0]["ciphertext"] != seal()[0]["ciphertext"]


def test_the_largest_text_and_template_fit() -> None:
    largest = {**TEMPLATE, "params": ["é" * 512] * 32}
    for part in seal({"type": "text", "text": "\u20ac" * 4096}, largest):
        assert len(part["ciphertext"]) <= MAX_SEALED


@pytest.mark.parametrize(
    "key",
    [{}, {"keyVersion": 0, "publicKey": KEY["publicKey"]}, {"keyVersion": 1, "publicKey": "AQID"}, {"keyVersion": 1}],
)
def test_with_an_unusable_key_nothing_is_sealed_and_nothing_passes_in_clear(key: dict[str, Any]) -> None:
    with pytest.raises(CannotSeal, match="shop"):
        seal(key=key)


# --- each reason


def changed(part: dict[str, Any], at: int) -> dict[str, Any]:
    raw = bytearray(decoded(part["ciphertext"]))
    raw[at] ^= 1
    return {**part, "ciphertext": encoded(bytes(raw))}


def test_every_byte_that_is_altered_is_noticed() -> None:
    (part,) = seal()
    for at in range(len(decoded(part["ciphertext"]))):
        expected = (
            Reason.MALFORMED
            if at == 0
            else Reason.OTHER_ACCOUNT
            if at <= 8
            else Reason.OTHER_MESSAGE
            if at <= 16
            else Reason.ALTERED
        )
        assert reason(changed(part, at)) is expected, at


def test_a_part_of_another_account_is_named_as_such() -> None:
    assert reason(seal(account_id="other")[0]) is Reason.OTHER_ACCOUNT


def test_a_part_of_another_message_is_named_as_such() -> None:
    assert reason(seal(request_id="request-2")[0]) is Reason.OTHER_MESSAGE


def test_a_forged_header_does_not_help() -> None:
    """The header of this place before the ciphertext of another: `info` has the whole ids."""
    stolen, own = (decoded(parts[0]["ciphertext"]) for parts in (seal(request_id="request-2"), seal()))
    assert reason({"ciphertext": encoded(own[:17] + stolen[17:])}) is Reason.ALTERED


def test_a_part_in_another_place_or_under_another_version_does_not_open() -> None:
    (part,) = seal()
    assert reason(part, index=1) is Reason.ALTERED
    assert reason(part, version=2) is Reason.ALTERED
    assert reason(part, private=new_private_key()) is Reason.ALTERED


@pytest.mark.parametrize("ciphertext", ["", "AQ", "A" * 100, "!!!!", "AQ=="])
def test_what_is_no_ciphertext_is_malformed(ciphertext: str) -> None:
    assert reason({"ciphertext": ciphertext}) is Reason.MALFORMED
