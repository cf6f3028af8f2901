"""A shelf in Cloud Storage: the object `media/{mediaId}`, its type in `Content-Type`, its name in metadata `filename`.

Google's library is synchronous, so it works in threads, of which there are few: a storage that hangs must not take the
threads of others. It is imported when it is first needed; most processes never do.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, TypeVar

from worker.media.shelf import Found, ShelfUnavailable

T = TypeVar("T")

FOLDER = "media"
THREADS = 8
CALL_SECONDS = 10.0
"""For one request to be answered, not for all of a file."""
TRIES_SECONDS = 15.0
"""From the first try of a request to the last."""
_UNTOLD = "application/octet-stream"
"""What Cloud Storage says of an object whose type nobody told it."""


class BucketShelf:
    """Credentials are those of the environment; STORAGE_EMULATOR_HOST names a place that wants none."""

    def __init__(self, bucket: str, *, project: str, credentials: Any = None) -> None:
        self._name = bucket
        self._project = project
        self._credentials = credentials
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="media")
        self._connecting = threading.Lock()
        self._connected: Any = None

    def where(self, media_id: str) -> str:
        return f"gs://{self._name}/{FOLDER}/{media_id}"

    async def find(self, media_id: str) -> Found | None:
        def look() -> Found | None:
            blob = self._blob(media_id)
            blob.reload(timeout=CALL_SECONDS, retry=self._retry())
            told = blob.content_type if blob.content_type != _UNTOLD else None
            return Found(size_bytes=blob.size or 0, mime_type=told, filename=(blob.metadata or {}).get("filename"))

        return await self._in_thread(look)

    async def read(self, media_id: str) -> bytes | None:
        def content() -> bytes:
            data: bytes = self._blob(media_id).download_as_bytes(timeout=CALL_SECONDS, retry=self._retry())
            return data

        return await self._in_thread(content)

    async def link(self, media_id: str, *, lasts: timedelta) -> str | None:
        return await self._in_thread(lambda: self._signed(media_id, lasts))

    async def add(self, media_id: str, content: bytes, *, mime_type: str, filename: str | None) -> None:
        def put() -> None:
            from google.api_core.exceptions import PreconditionFailed

            blob = self._blob(media_id)
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

    # --- in a thread

    def _signed(self, media_id: str, lasts: timedelta) -> str | None:
        """With a key of our own, or by asking Google to sign: an instance of Cloud Run has an account and no key."""
        from google.auth.credentials import AnonymousCredentials, Signing
        from google.auth.transport.requests import Request

        blob = self._blob(media_id)
        credentials = blob.client._credentials
        if isinstance(credentials, AnonymousCredentials):
            return None
        by_google = {}
        if not isinstance(credentials, Signing):
            credentials.refresh(Request())
            by_google = {"service_account_email": credentials.service_account_email, "access_token": credentials.token}
        url: str = blob.generate_signed_url(version="v4", expiration=lasts, method="GET", **by_google)
        return url

    def _blob(self, media_id: str) -> Any:
        with self._connecting:
            if self._connected is None:
                from google.cloud import storage

                client = storage.Client(project=self._project, credentials=self._credentials)
                self._connected = client.bucket(self._name)
        return self._connected.blob(f"{FOLDER}/{media_id}")

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
            raise ShelfUnavailable(f"gs://{self._name} cannot be used ({_said(error)})") from error

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _said(error: Exception) -> str:
    code = getattr(error, "code", None)
    return f"{type(error).__name__}{f' {int(code)}' if isinstance(code, int) else ''}"
