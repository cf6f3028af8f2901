"""The states of an upload, and what each event makes of them.

A state is what the document's fields mean at a moment (`state_of` in media/upload.py): a lease ends, and a handle
expires, without a write.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class UploadState(StrEnum):
    FREE = "free"
    """Any worker may claim it."""
    UPLOADING = "uploading"
    """Its owner uploads under a lease; the other workers wait."""
    READY = "ready"
    """It has a handle that any worker may send with."""
    WAITING = "waiting"
    """It failed with an error that passes. Any worker may claim it from `notBefore` on."""
    REFUSED = "refused"
    """The provider refused the file for good. No worker uploads it again before `notBefore`."""


class UploadEvent(StrEnum):
    CLAIM = "claim"
    DONE = "done"
    FAIL = "fail"
    """With an error that passes and names a time, or gets one."""
    FAIL_AUTH = "fail_auth"
    """The credentials are wrong. A person repairs that, and should not have to wait then."""
    REFUSE = "refuse"
    LEASE_ENDS = "lease_ends"
    """Its owner crashed."""
    WAIT_ENDS = "wait_ends"
    """`notBefore` has come."""
    HANDLE_ENDS = "handle_ends"
    """The handle is about to expire, or the provider refused it."""


_S, _E = UploadState, UploadEvent

TRANSITIONS: Mapping[tuple[UploadState, UploadEvent], UploadState] = {
    (_S.FREE, _E.CLAIM): _S.UPLOADING,
    (_S.UPLOADING, _E.DONE): _S.READY,
    (_S.UPLOADING, _E.FAIL): _S.WAITING,
    (_S.UPLOADING, _E.FAIL_AUTH): _S.FREE,
    (_S.UPLOADING, _E.REFUSE): _S.REFUSED,
    (_S.UPLOADING, _E.LEASE_ENDS): _S.FREE,
    (_S.WAITING, _E.WAIT_ENDS): _S.FREE,
    (_S.REFUSED, _E.WAIT_ENDS): _S.FREE,
    (_S.READY, _E.HANDLE_ENDS): _S.FREE,
}
