"""Write: one commit after another over one stream, as the web and mobile clients send what their users changed.

A stream's life: the first message names the database and writes nothing; it is answered with the stream's id and its
first token. Each message after it is a commit of its own, decided and refused exactly as a `Commit` is, and answered
with the results and a new token. A refusal ends the stream with the commit's status: the client opens another and goes
on behind the write that was refused. A message without writes is the client's last; it too is answered with a token.

A token says how far the client has heard. Nothing is kept for a client that heard less, so a stream cannot be resumed,
and whatever token a later message carries is taken, as in Google's emulator: clients open a new stream and send again
what was not acknowledged.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from firestore_emulator.documents.protos import CommitRequest, Proto, WriteResponse
from firestore_emulator.rpc.errors import invalid_argument

Commit = Callable[[Proto], Awaitable[Proto]]
"""A `CommitRequest` to its `CommitResponse`, or the refusal raised."""


async def write_stream(
    stream_id: str, requests: AsyncIterator[Proto], check_database: Callable[[str], str], commit: Commit
) -> AsyncIterator[Proto]:
    database = ""
    answered = 0
    async for request in requests:
        if not database:
            database = _opened(request, check_database)
            answer = WriteResponse(stream_id=stream_id)
        else:
            _check_later(request, database)
            answer = WriteResponse()
            if request.writes:
                committed = await commit(CommitRequest(database=database, writes=request.writes))
                answer.write_results.extend(committed.write_results)
                answer.commit_time.CopyFrom(committed.commit_time)
        answer.stream_token = str(answered).encode()
        answered += 1
        yield answer
        if answered > 1 and not request.writes:
            return


def _opened(request: Proto, check_database: Callable[[str], str]) -> str:
    """The database of a stream that opens with this message."""
    if not request.database:
        raise invalid_argument("'database' must be set on an initial write request.")
    _refuse_resuming(request)
    if request.stream_token:
        raise invalid_argument("A stream cannot be resumed: the first message must not carry a stream_token.")
    if request.writes:
        raise invalid_argument("The first message opens the stream and must not carry writes.")
    return check_database(request.database)


def _check_later(request: Proto, database: str) -> None:
    _refuse_resuming(request)
    if request.database and request.database != database:
        raise invalid_argument(f'The stream is for "{database}", and a message on it named "{request.database}".')


def _refuse_resuming(request: Proto) -> None:
    if request.stream_id:
        raise invalid_argument("A stream cannot be resumed: stream_id must not be set.")
