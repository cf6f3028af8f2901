"""Files in Cloud Storage: the object `media/{accountId}/{mediaId}`, with its type in `Content-Type` and its name in the
metadata `filename`.

Google's library is synchronous, so it works in a few threads of its own: if Cloud Storage hangs, other work keeps its
threads. It is imported when it is first needed, because most processes never need it.
"""

from __future__ import annotations

import asyncio
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from firestore_outbox.media.storage import PIECE_BYTES, FileRef, Found, StorageUnavailable

T = TypeVar("T")

FOLDER = "media"
THREADS = 8
CALL_SECONDS = 10.0
"""For one request to be answered, not for all of a file."""
TRIES_SECONDS = 15.0
"""From the first try of a request to the last."""
_UNTOLD = "application/octet-stream"
"""The type that Cloud Storage reports for an object that was stored without one."""


class BucketStorage:
    """Credentials come from the environment; with STORAGE_EMULATOR_HOST none are needed."""

    def __init__(self, bucket: str, *, project: str, credentials: Any = None) -> None:
        self._name = bucket
        self._project = project
        self._credentials = credentials
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="media")
        self._connecting = threading.Lock()
        self._connected: Any = None

    def where(self, ref: FileRef) -> str:
        return f"gs://{self._name}/{_object_name(ref)}"

    async def find(self, ref: FileRef) -> Found | None:
        def look() -> Found | None:
            blob = self._blob(ref)
            blob.reload(timeout=CALL_SECONDS, retry=self._retry())
            told = blob.content_type if blob.content_type != _UNTOLD else None
            metadata = blob.metadata or {}
            return Found(
                size_bytes=blob.size or 0,
                mime_type=told,
                filename=metadata.get("filename"),
                crc32c=blob.crc32c,
                announced_sha256=metadata.get("sha256"),
            )

        return await self._in_thread(look)

    async def read(self, ref: FileRef) -> bytes | None:
        def content() -> bytes:
            data: bytes = self._blob(ref).download_as_bytes(timeout=CALL_SECONDS, retry=self._retry())
            return data

        return await self._in_thread(content)

    async def pieces(self, ref: FileRef, found: Found) -> AsyncIterator[bytes]:
        """Each piece is a request of its own. Its checksum is known for the whole alone, so the last piece is held back
        until all of them match it."""
        import google_crc32c

        checksum: Any = google_crc32c.Checksum()  # type: ignore[no-untyped-call]  # the library has no types
        for start in range(0, found.size_bytes, PIECE_BYTES):
            piece = await self._in_thread(partial(self._piece, ref, start))
            checksum.update(piece or b"")
            is_last = start + PIECE_BYTES >= found.size_bytes
            if piece is None or len(piece) != min(PIECE_BYTES, found.size_bytes - start):
                raise StorageUnavailable(f"{self.where(ref)} changed while it was read")
            if is_last and found.crc32c not in (None, b64encode(checksum.digest()).decode()):
                raise StorageUnavailable(f"{self.where(ref)} does not match its checksum")
            yield piece

    async def link(self, ref: FileRef, *, lasts: timedelta) -> str | None:
        return await self._in_thread(lambda: self._signed(ref, lasts))

    async def open_upload(
        self, ref: FileRef, *, size_bytes: int, mime_type: str, filename: str | None, origin: str | None
    ) -> str | None:
        def opened() -> str:
            blob = self._blob(ref)
            blob.metadata = {"sha256": ref.media_id, **({"filename": filename} if filename else {})}
            url: str = blob.create_resumable_upload_session(
                content_type=mime_type,
                size=size_bytes,
                origin=origin,
                if_generation_match=0,
                timeout=CALL_SECONDS,
                retry=self._retry(),
            )
            return url

        return await self._in_thread(opened)

    async def copy(self, ref: FileRef, to: FileRef) -> None:
        def copied() -> None:
            from google.api_core.exceptions import PreconditionFailed

            source = self._blob(ref)
            try:
                source.bucket.copy_blob(
                    source,
                    source.bucket,
                    _object_name(to),
                    if_generation_match=0,
                    timeout=CALL_SECONDS,
                    retry=self._retry(),
                )
            except PreconditionFailed:
                return

        await self._in_thread(copied)

    async def add(self, ref: FileRef, content: bytes, *, mime_type: str, filename: str | None) -> None:
        def put() -> None:
            from google.api_core.exceptions import PreconditionFailed

            blob = self._blob(ref)
            if filename:
                blob.metadata = {"filename": filename}
            try:
                blob.upload_from_string(
                    content,
                    content_type=mime_type,
                    if_generation_match=0,  # only if it is not there yet; which also makes trying again harmless
                    timeout=CALL_SECONDS,
                    retry=self._retry(),
                )
            except PreconditionFailed:
                return

        await self._in_thread(put)

    async def delete_all(self, account_id: str) -> int:
        def deleted() -> int:
            bucket = self._blob(FileRef(account_id, "")).bucket
            blobs = list(bucket.list_blobs(prefix=_object_name(FileRef(account_id, "")), retry=self._retry()))
            for blob in blobs:
                blob.delete(timeout=CALL_SECONDS, retry=self._retry())
            return len(blobs)

        return await self._in_thread(deleted) or 0

    async def delete(self, ref: FileRef) -> bool:
        def deleted() -> bool:
            self._blob(ref).delete(timeout=CALL_SECONDS, retry=self._retry())
            return True

        return await self._in_thread(deleted) is True

    # --- in a thread

    def _piece(self, ref: FileRef, start: int) -> bytes:
        piece: bytes = self._blob(ref).download_as_bytes(
            start=start,
            end=start + PIECE_BYTES - 1,
            raw_download=True,
            checksum=None,
            timeout=CALL_SECONDS,
            retry=self._retry(),
        )
        return piece

    def _signed(self, ref: FileRef, lasts: timedelta) -> str | None:
        """With a key of our own, or by asking Google to sign: an instance of Cloud Run has an account and no key."""
        from google.auth.credentials import AnonymousCredentials, Signing
        from google.auth.transport.requests import Request

        blob = self._blob(ref)
        credentials = blob.client._credentials
        if isinstance(credentials, AnonymousCredentials):
            return None
        by_google = {}
        if not isinstance(credentials, Signing):
            credentials.refresh(Request())
            by_google = {"service_account_email": credentials.service_account_email, "access_token": credentials.token}
        url: str = blob.generate_signed_url(version="v4", expiration=lasts, method="GET", **by_google)
        return url

    def _blob(self, ref: FileRef) -> Any:
        with self._connecting:
            if self._connected is None:
                from google.cloud import storage

                client = storage.Client(project=self._project, credentials=self._credentials)
                self._connected = client.bucket(self._name)
        return self._connected.blob(_object_name(ref))

    def _retry(self) -> Any:
        from google.cloud.storage.retry import DEFAULT_RETRY

        return DEFAULT_RETRY.with_timeout(TRIES_SECONDS)

    async def _in_thread(self, work: Callable[[], T]) -> T | None:
        """None: there is no such object."""
        from google.api_core.exceptions import GoogleAPIError, NotFound
        from google.auth.exceptions import GoogleAuthError
        from google.cloud.storage.exceptions import DataCorruption
        from requests import RequestException

        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except NotFound:
            return None
        except (GoogleAPIError, GoogleAuthError, DataCorruption, RequestException, OSError) as error:
            # Its own text may quote a signed address.
            raise StorageUnavailable(f"gs://{self._name} cannot be used ({_said(error)})") from error

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _object_name(ref: FileRef) -> str:
    return f"{FOLDER}/{ref.media_id}" if ref.account_id is None else f"{FOLDER}/{ref.account_id}/{ref.media_id}"


def _said(error: Exception) -> str:
    code = getattr(error, "code", None)
    return f"{type(error).__name__}{f' {int(code)}' if isinstance(code, int) else ''}"
