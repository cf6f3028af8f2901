"""As much of Cloud Storage's JSON API as a storage needs, on a socket of this machine: one bucket, whose objects a test
can see, and trouble that it can order."""

from __future__ import annotations

import base64
import email
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import google_crc32c

BUCKET = "shop-files"


@dataclass
class Stored:
    content: bytes
    content_type: str
    metadata: dict[str, str]
    generation: int

    @property
    def crc32c(self) -> str:
        checksum: Any = google_crc32c.Checksum(self.content)  # type: ignore[no-untyped-call]  # the library has no types
        return base64.b64encode(checksum.digest()).decode()


@dataclass
class FakeStorage:
    address: str = ""
    objects: dict[str, Stored] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    """Method and path of each."""
    trouble: list[int] = field(default_factory=list)
    """The next calls are answered with these statuses."""
    corrupts: bool = False
    """Downloads do not match their checksum."""
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)


@contextmanager
def fake_storage() -> Iterator[FakeStorage]:
    storage = FakeStorage()

    class Handler(_Handler):
        the_storage = storage

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    storage.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield storage
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    the_storage: FakeStorage
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        return

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path.endswith(f"/b/{BUCKET}"):  # asked for behind our back, by the library, at any time
            self._json(200, {"kind": "storage#bucket", "name": BUCKET, "location": "EU"})
            return
        if self._begins_badly():
            return
        if url.path.endswith(f"/b/{BUCKET}/o"):
            prefix = parse_qs(url.query).get("prefix", [""])[0]
            found = {name: one for name, one in self.the_storage.objects.items() if name.startswith(prefix)}
            self._json(200, {"items": [_resource(name, one) for name, one in found.items()]})
            return
        name = self._object_name(url.path)
        stored = self.the_storage.objects.get(name)
        if stored is None:
            self._json(404, {"error": {"code": 404, "message": "No such object"}})
        elif url.path.startswith("/download/"):
            self._download(stored)
        else:
            self._json(200, _resource(name, stored))

    def _download(self, stored: Stored) -> None:
        headers = {"Content-Type": stored.content_type, "X-Goog-Hash": f"crc32c={stored.crc32c}"}
        content = bytes(len(stored.content)) if self.the_storage.corrupts else stored.content
        wanted = self.headers.get("Range")
        if wanted is None:
            self._answer(200, content, headers)
            return
        start, end = map(int, wanted.removeprefix("bytes=").split("-"))
        piece = content[start : end + 1]
        headers["Content-Range"] = f"bytes {start}-{start + len(piece) - 1}/{len(content)}"
        self._answer(206, piece, headers)

    def _copy(self, path: str, query: dict[str, list[str]]) -> None:
        source, _, target = path.partition("/copyTo")
        name = unquote(target.partition("/o/")[2])
        objects, stored = self.the_storage.objects, self.the_storage.objects.get(self._object_name(source))
        if stored is None:
            self._json(404, {"error": {"code": 404, "message": "No such object"}})
        elif query.get("ifGenerationMatch") == ["0"] and name in objects:
            self._json(412, {"error": {"code": 412, "message": "It exists"}})
        else:
            objects[name] = replace(stored, generation=len(objects) + 1)
            self._json(200, _resource(name, objects[name]))

    def do_POST(self) -> None:
        body = self._body()
        if self._begins_badly():
            return
        if "/copyTo/" in self.path:
            self._copy(urlsplit(self.path).path, parse_qs(urlsplit(self.path).query))
            return
        query = parse_qs(urlsplit(self.path).query)
        if query["uploadType"] == ["multipart"]:
            message = email.message_from_bytes(
                b"Content-Type: " + self.headers["Content-Type"].encode() + b"\r\n\r\n" + body
            )
            parts: Any = message.get_payload()
            about, content = parts
            self._store(json.loads(_payload(about)), content.get_content_type(), _payload(content), query)
        else:
            session = str(len(self.the_storage.sessions))
            self.the_storage.sessions[session] = {
                "about": json.loads(body),
                "type": self.headers["X-Upload-Content-Type"],
                "size": self.headers.get("X-Upload-Content-Length"),
                "origin": self.headers.get("Origin"),
                "query": query,
            }
            self._answer(200, b"", {"Location": f"{self.the_storage.address}/resumable/{session}"})

    def do_DELETE(self) -> None:
        if self._begins_badly():
            return
        if self.the_storage.objects.pop(self._object_name(urlsplit(self.path).path), None) is None:
            self._json(404, {"error": {"code": 404, "message": "No such object"}})
        else:
            self._answer(204, b"", {})

    def do_PUT(self) -> None:
        body = self._body()
        if self._begins_badly():
            return
        session = self.the_storage.sessions[self.path.rsplit("/", 1)[1]]
        self._store(session["about"], session["type"], body, session["query"])

    def _store(self, about: dict[str, Any], content_type: str, content: bytes, query: dict[str, list[str]]) -> None:
        name = about.get("name") or query["name"][0]
        objects = self.the_storage.objects
        if query.get("ifGenerationMatch") == ["0"] and name in objects:
            self._json(412, {"error": {"code": 412, "message": "It exists"}})
            return
        objects[name] = Stored(
            content, about.get("contentType", content_type), about.get("metadata", {}), len(objects) + 1
        )
        self._json(200, _resource(name, objects[name]))

    def _begins_badly(self) -> bool:
        self.the_storage.calls.append(f"{self.command} {urlsplit(self.path).path}")
        if not self.the_storage.trouble:
            return False
        status = self.the_storage.trouble.pop(0)
        self._json(status, {"error": {"code": status, "message": "as ordered"}})
        return True

    def _object_name(self, path: str) -> str:
        bucket, _, name = path.partition("/b/")[2].partition("/o/")
        return unquote(name) if bucket == BUCKET else ""

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _json(self, status: int, body: dict[str, Any]) -> None:
        self._answer(status, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _payload(part: Any) -> bytes:
    content: bytes = part.get_payload(decode=True)
    return content


def _resource(name: str, stored: Stored) -> dict[str, Any]:
    return {
        "kind": "storage#object",
        "name": name,
        "bucket": BUCKET,
        "size": str(len(stored.content)),
        "contentType": stored.content_type,
        "metadata": stored.metadata,
        "generation": str(stored.generation),
        "crc32c": stored.crc32c,
    }
