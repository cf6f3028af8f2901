"""Firebase ID tokens: whom firebase-admin believes, with its own verification and certificates that are served here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization

from firestore_outbox.web.auth import CannotTell, Unauthenticated, UnsafeSettings, User, UserCheck
from tests.web.functions.firebase import PROJECT, Google, ago, id_token, signing_key, unsigned_token

ISSUER = f"https://securetoken.google.com/{PROJECT}"
CUSTOM_TOKENS = "https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit"


def _signed_with_the_public_key() -> str:
    """The old trick: a symmetric signature with a key that everybody has. PyJWT refuses to make one, so by hand."""
    public = signing_key("google").public_key()
    secret = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    hmac = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    unsigned = unsigned_token("ann").split(".")
    head = jwt.utils.base64url_encode(b'{"alg":"HS256","kid":"google","typ":"JWT"}').decode()
    signature = hmac.sign(f"{head}.{unsigned[1]}".encode(), secret)
    return f"{head}.{unsigned[1]}.{jwt.utils.base64url_encode(signature).decode()}"


def _changed() -> str:
    """Another user's claims under a genuine signature."""
    head, _, signature = id_token("ann").split(".")
    return f"{head}.{id_token('bob').split('.')[1]}.{signature}"


REFUSED: dict[str, Callable[[], str | None]] = {
    "none": lambda: None,
    "an empty one": lambda: "",
    "another scheme": lambda: "Basic YW5uOnB3",
    "a bearer with nothing": lambda: "Bearer ",
    "garbage": lambda: "Bearer garbage",
    "two dots": lambda: "Bearer a.b.c",
    "a stranger's key": lambda: "Bearer " + id_token("ann", key="stranger"),
    "a stranger's key under Google's name": lambda: "Bearer " + id_token("ann", key="stranger", kid="google"),
    "claims that were changed": lambda: "Bearer " + _changed(),
    "no signature": lambda: "Bearer " + unsigned_token("ann"),
    "no signature, and Google's key named": lambda: "Bearer " + unsigned_token("ann", kid="google"),
    "signed with the public key as a secret": lambda: "Bearer " + _signed_with_the_public_key(),
    "no key named": lambda: "Bearer " + id_token("ann", kid=""),
    "expired": lambda: "Bearer " + id_token("ann", iat=ago(hours=2), exp=ago(hours=1)),
    "not valid yet": lambda: "Bearer " + id_token("ann", iat=ago(minutes=-10)),
    "without an end": lambda: "Bearer " + id_token("ann", exp=None),
    "another project": lambda: "Bearer " + id_token("ann", aud="other", iss="https://securetoken.google.com/other"),
    "another audience": lambda: "Bearer " + id_token("ann", aud="other"),
    "several audiences": lambda: "Bearer " + id_token("ann", aud=[PROJECT, "other"]),
    "another issuer": lambda: "Bearer " + id_token("ann", iss="https://login.example"),
    "a session cookie's issuer": lambda: (
        "Bearer " + id_token("ann", iss=f"https://session.firebase.google.com/{PROJECT}")
    ),
    "a service account's": lambda: "Bearer " + id_token("1", iss="https://accounts.google.com", aud="https://worker"),
    "a custom token": lambda: "Bearer " + id_token("ann", aud=CUSTOM_TOKENS, iss="x@y"),
    "no subject": lambda: "Bearer " + id_token("", sub=None),
    "an empty name": lambda: "Bearer " + id_token(""),
    "a name that is none": lambda: "Bearer " + id_token("ann", sub=7),
}


@pytest.mark.parametrize("credential", REFUSED)
async def test_a_token_that_firebase_did_not_give_for_this_project_is_not_believed(
    google: Google, credential: str
) -> None:
    assert isinstance(await UserCheck(PROJECT).check(REFUSED[credential]()), Unauthenticated)


async def test_a_genuine_token_names_its_user(google: Google) -> None:
    users = UserCheck(PROJECT)
    assert await users.check("Bearer " + id_token("ann")) == User("ann")
    assert await users.check("bearer " + id_token("bob")) == User("bob")


async def test_a_token_made_by_a_clock_that_is_a_little_ahead_is_believed(google: Google) -> None:
    assert await UserCheck(PROJECT).check("Bearer " + id_token("ann", iat=ago(seconds=-10))) == User("ann")


async def test_an_expired_token_is_distinguished_from_a_false_one(google: Google) -> None:
    expired = await UserCheck(PROJECT).check("Bearer " + id_token("ann", iat=ago(hours=2), exp=ago(hours=1)))
    assert isinstance(expired, Unauthenticated)
    assert "expired" in expired.reason


async def test_a_refusal_does_not_repeat_the_token(google: Google) -> None:
    for credential in REFUSED.values():
        header = credential() or ""
        refusal = await UserCheck(PROJECT).check(header)
        token = header.removeprefix("Bearer ")
        assert isinstance(refusal, Unauthenticated)
        assert not token or token not in refusal.reason


async def test_certificates_are_fetched_once_for_many_tokens(google: Google) -> None:
    users = UserCheck(PROJECT)
    await users.check("Bearer " + id_token("ann"))
    found = await asyncio.gather(*(users.check("Bearer " + id_token(f"user-{n}")) for n in range(20)))
    assert found == [User(f"user-{n}") for n in range(20)]
    assert google.fetches == 1


async def test_certificates_are_fetched_again_when_google_says_so_and_a_withdrawn_key_is_believed_no_more(
    google: Google,
) -> None:
    google.max_age_seconds = 0
    users = UserCheck(PROJECT)
    assert await users.check("Bearer " + id_token("ann")) == User("ann")
    google.keys = ["newer"]
    assert await users.check("Bearer " + id_token("ann", key="newer")) == User("ann")
    assert isinstance(await users.check("Bearer " + id_token("ann")), Unauthenticated)


async def test_no_user_is_refused_for_certificates_that_are_out_of_reach(google: Google) -> None:
    users = UserCheck(PROJECT)
    google.is_down = True
    assert await users.check("Bearer " + id_token("ann")) == CannotTell()
    google.is_down = False
    assert await users.check("Bearer " + id_token("ann")) == User("ann")


async def test_the_loop_goes_on_while_certificates_are_fetched(google: Google) -> None:
    """They come from this very loop, so a check that blocked it would never end."""
    assert await UserCheck(PROJECT).check("Bearer " + id_token("ann")) == User("ann")


# --- the emulators' tokens


async def test_unsigned_tokens_are_believed_on_this_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIREBASE_AUTH_EMULATOR_HOST", "127.0.0.1:9099")
    users = UserCheck(PROJECT)
    assert await users.check("Bearer " + unsigned_token("ann")) == User("ann")
    wrong: dict[str, Any] = {"aud": "other", "iss": "https://login.example", "sub": 7}
    for claim, value in wrong.items():
        assert isinstance(await users.check("Bearer " + unsigned_token("ann", **{claim: value})), Unauthenticated)
    monkeypatch.setenv("K_SERVICE", "enqueue")
    with pytest.raises(UnsafeSettings, match="FIREBASE_AUTH_EMULATOR_HOST is set on Cloud Run"):
        UserCheck(PROJECT)
