"""Where events may come from by HTTP: OUTBOX_EVENTS, and the decisions about one call.

    OUTBOX_EVENTS='{"nextup": {"scheme": "hmac", "header": "X-Notion-Signature", "prefix": "sha256=",
                               "key": "/data/assignee/id", "id": "/id"}}'
    OUTBOX_EVENT_SECRET_NEXTUP=...                     # from Secret Manager

`hmac`: the header has the HMAC-SHA256 of the body. `secret`: the header has the secret itself. `oidc`: the call has a
token that Google signed for `audience`, of the service account `email`. A kind that is not named here is closed.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError


class _Source(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str = Field(default="", pattern=r"^(/.*)?$")
    """A JSON pointer to the key. Empty: the handler's own `key` function finds it."""
    id: str = Field(default="", pattern=r"^(/.*)?$")
    """A JSON pointer to the event's id. Empty, or nothing there: a hash of the body."""
    perMinute: float = Field(default=600, gt=0)
    """Calls from one address, for each process."""


class Hmac(_Source):
    scheme: Literal["hmac"]
    header: str = Field(min_length=1)
    prefix: str = ""
    encoding: Literal["hex", "base64"] = "hex"


class SharedSecret(_Source):
    scheme: Literal["secret"]
    header: str = Field(min_length=1)


class Oidc(_Source):
    scheme: Literal["oidc"]
    audience: str = Field(min_length=1)
    email: str = Field(min_length=3)


Source = Annotated[Hmac | SharedSecret | Oidc, Field(discriminator="scheme")]
_SOURCES: TypeAdapter[dict[str, Hmac | SharedSecret | Oidc]] = TypeAdapter(dict[str, Source])


def sources(text: str) -> dict[str, Hmac | SharedSecret | Oidc]:
    """The value of OUTBOX_EVENTS. Raises ValueError with a sentence."""
    if not text.strip():
        return {}
    try:
        return _SOURCES.validate_python(json.loads(text))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except ValueError:
        raise ValueError('must be JSON, such as {"nextup": {"scheme": "secret", "header": "X-Token"}}') from None


def secret_variable(kind: str) -> str:
    return f"OUTBOX_EVENT_SECRET_{kind.upper().replace('-', '_')}"


def is_signed(source: Hmac, secret: str, header: str | None, body: bytes) -> bool:
    if header is None or not header.startswith(source.prefix):
        return False
    given = header.removeprefix(source.prefix).strip()
    try:
        signature = bytes.fromhex(given) if source.encoding == "hex" else base64.b64decode(given, validate=True)
    except (ValueError, binascii.Error):
        return False
    return hmac.compare_digest(signature, hmac.new(secret.encode(), body, sha256).digest())


def is_secret(secret: str, header: str | None) -> bool:
    return header is not None and hmac.compare_digest(header.encode(), secret.encode())


def key_in(source: _Source, event: Mapping[str, Any]) -> str | None:
    """The key at the source's pointer. None: there is none, or the pointer is empty."""
    return _text(pointed(event, source.key)) if source.key else None


def id_of(source: _Source, event: Mapping[str, Any], body: bytes) -> str:
    named = _text(pointed(event, source.id)) if source.id else None
    return named or sha256(body).hexdigest()


def _text(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value) or None


def pointed(value: Any, pointer: str) -> Any:
    """What a JSON pointer (RFC 6901) names; None if there is nothing."""
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isascii() and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value
