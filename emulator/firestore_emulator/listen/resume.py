"""Taking up a target again: from which moment, if what happened since is still known.

A resume token is a read time that the stream has told, in microseconds. A client that comes back with one, or with a
read time itself, says that it knows its target as it was then. As long as history reaches back that far, it is sent
what changed since. Otherwise, and for what was never a token of ours, it gets RESET, forgets what it has, and is
sent everything, which is always right, if not the least.

That nothing is missed rests on two promises: a stream tells a time only when all commits up to it were sent, and no
later commit gets that time or an earlier one (`Engine.moment`).
"""

from __future__ import annotations

from firestore_emulator.documents.protos import Proto
from firestore_emulator.documents.times import micros_of
from firestore_emulator.storage.engine import Engine

_TOKEN_BYTES = 8


def token_at(micros: int) -> bytes:
    return micros.to_bytes(_TOKEN_BYTES, "big")


def resumed_from(target: Proto, database: str, engine: Engine) -> int | None:
    """The moment, in microseconds, after which to begin; None to begin anew."""
    match target.WhichOneof("resume_type"):
        case "resume_token" if len(target.resume_token) == _TOKEN_BYTES:
            micros = int.from_bytes(target.resume_token, "big")
        case "read_time":
            micros = micros_of(target.read_time)
        case _:
            return None
    now = engine.now_micros()
    return micros if micros <= now and engine.history.reaches(database, micros, now) else None
