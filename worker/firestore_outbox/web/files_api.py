"""Files of an account for its members' apps.

    POST /v1/accounts/{accountId}/uploads             {sha256, bytes, mimeType, filename?, isLost?}
    GET  /v1/accounts/{accountId}/files/{mediaId}     an address at which the file can be read for 15 minutes

An upload answers 200 `{mediaId, state: "stored"}` if the account has the file, or 201 `{mediaId, state: "open",
uploadUrl, expiresAt}`: a resumable session of Cloud Storage. Asked again for the same content, it answers with the same
session. `isLost: true` asks for a new one, for a session that storage does not know any more.

    400  the body is at fault               403  not a member of the account, or a viewer that wants to upload
    404  the account has no such file       413  too large (OUTBOX_MEDIA_MAX_MB)    415  not a type that is taken
    503  Firestore, storage or Google's certificates: try again; or no storage is configured
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

from firestore_outbox import log
from firestore_outbox.accounts.roles import Action
from firestore_outbox.errors import Unavailable, Unwritable
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.media.intake import Intake, Link, NoFile, NoUploads, Open, Stored
from firestore_outbox.media.new_file import Malformed, NewFile, TooLarge, WrongType
from firestore_outbox.media.storage import StorageUnavailable
from firestore_outbox.messages.ids import is_account_id
from firestore_outbox.web.auth import User
from firestore_outbox.web.http_api import Answer, BadBody, NotAllowed, allow, as_json, object_of, refusal

MAX_BODY_BYTES = 4 * 1024
LONGEST_MEDIA_ID = 512
_FIELDS = {"sha256": str, "bytes": int, "mimeType": str, "filename": str, "isLost": bool}
_REQUIRED = ("sha256", "bytes", "mimeType")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesCall:
    account_id: str
    media_id: str | None = None
    """The file to read; None: one is to be uploaded."""


def files_call_in(path: str, method: str) -> FilesCall | None:
    """None: no such path, or not with this method."""
    _, found, rest = path.rpartition("/v1/accounts/")
    account_id, _, below = rest.partition("/")
    if not found or not is_account_id(account_id):
        return None
    if below == "uploads":
        return FilesCall(account_id=account_id) if method == "POST" else None
    kind, _, media_id = below.partition("/")
    is_file = kind == "files" and 0 < len(media_id) <= LONGEST_MEDIA_ID and "/" not in media_id and method == "GET"
    return FilesCall(account_id=account_id, media_id=media_id) if is_file else None


@dataclass(frozen=True, slots=True)
class FilesApi:
    gateway: Gateway
    intake: Intake

    async def __call__(self, user: User, call: FilesCall, body: bytes, *, origin: str | None) -> Answer:
        try:
            if call.media_id is not None:
                await allow(self.gateway, user, call.account_id, Action.READ)
                return _link(call.media_id, await self.intake.link(call.account_id, call.media_id))
            await allow(self.gateway, user, call.account_id, Action.SEND)
            fields = _checked(object_of(body))
            file = NewFile(
                sha256=fields["sha256"],
                size_bytes=fields["bytes"],
                mime_type=fields["mimeType"],
                filename=fields.get("filename"),
            )
            return _started(
                await self.intake.start(
                    call.account_id, file, by=user.uid, origin=origin, is_lost=fields.get("isLost", False)
                )
            )
        except BadBody as error:
            return refusal(400, str(error))
        except NotAllowed as error:
            return refusal(403, str(error))
        except StorageUnavailable as error:
            log.storage_unavailable(call.account_id, error)
            return refusal(503, "storage does not answer at the moment; try again")
        except (Unavailable, Unwritable):
            return refusal(503, "the upload could not be stored at the moment; try again")


def _checked(fields: dict[str, Any]) -> dict[str, Any]:
    for name in _REQUIRED:
        if name not in fields:
            raise BadBody(f"{name} is missing")
    for name, value in fields.items():
        kind = _FIELDS.get(name)
        if kind is None:
            raise BadBody(f"{name[:60]!r} is unknown; known are {', '.join(_FIELDS)}")
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise BadBody(f"{name} must be of the type {kind.__name__}")
    return fields


def _started(found: Stored | Open | NoUploads | Malformed | TooLarge | WrongType) -> Answer:
    match found:
        case Stored(media_id=media_id):
            return Answer(200, {"mediaId": media_id, "state": "stored"})
        case Open(media_id=media_id, url=url, expires_at=expires_at):
            return Answer(
                201, as_json({"mediaId": media_id, "state": "open", "uploadUrl": url, "expiresAt": expires_at})
            )
        case NoUploads():
            return _no_storage()
        case Malformed(sentence=sentence):
            return refusal(400, sentence)
        case TooLarge(sentence=sentence):
            return refusal(413, sentence)
        case WrongType(sentence=sentence):
            return refusal(415, sentence)
        case _:
            assert_never(found)


def _link(media_id: str, found: Link | NoFile | NoUploads) -> Answer:
    match found:
        case Link(url=url, expires_at=expires_at, found=file):
            about = {"mimeType": file.mime_type, "filename": file.filename, "bytes": file.size_bytes}
            return Answer(200, as_json({"mediaId": media_id, "url": url, "expiresAt": expires_at, **about}))
        case NoFile():
            return refusal(404, "the account has no such file, or not yet")
        case NoUploads():
            return _no_storage()
        case _:
            assert_never(found)


def _no_storage() -> Answer:
    return refusal(503, "no storage for files with addresses is configured (OUTBOX_MEDIA_BUCKET)")
