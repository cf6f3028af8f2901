"""A registry of npm packages on this machine: what is in node_modules, packed again as it is asked for.

With it `npm install` runs as a user types it, without the network and without what npm remembers of earlier installs.
"""

from __future__ import annotations

import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

MANIFEST = "package.json"


@contextmanager
def registry(modules: Path) -> Iterator[str]:
    """Its address, while it serves."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(_packages(modules)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def _packages(modules: Path) -> dict[str, dict[str, Path]]:
    """Name -> version -> folder."""
    found: dict[str, dict[str, Path]] = {}
    for pattern in ("*", "@*/*"):
        for folder in (one for one in modules.glob(pattern) if (one / MANIFEST).is_file()):
            manifest = _manifest(folder)
            found.setdefault(manifest["name"], {})[manifest["version"]] = folder
            for name, versions in _packages(folder / "node_modules").items():
                found.setdefault(name, {}).update(versions)
    return found


def _manifest(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return manifest


def _handler(packages: dict[str, dict[str, Path]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name, _, version = unquote(self.path.lstrip("/")).partition("/-/")
            versions = packages.get(name, {})
            if version in versions:
                self._answer(200, "application/octet-stream", _packed(versions[version]))
            elif versions and not version:
                address = f"http://{self.headers['Host']}/{name}/-/"
                self._answer(200, "application/json", json.dumps(_about(name, versions, address)).encode())
            else:
                self._answer(404, "application/json", b"{}")

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def _about(name: str, versions: dict[str, Path], address: str) -> dict[str, Any]:
    manifests = {version: _manifest(folder) for version, folder in versions.items()}
    newest = max(manifests, key=lambda version: [int(one) for one in version.partition("-")[0].split(".")])
    listed = {version: {**fields, "dist": {"tarball": address + version}} for version, fields in manifests.items()}
    return {"name": name, "dist-tags": {"latest": newest}, "versions": listed}


def _packed(folder: Path) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz", compresslevel=1) as archive:
        for file in sorted(folder.rglob("*")):
            inside = file.relative_to(folder)
            if file.is_file() and inside.parts[0] != "node_modules" and not file.name.endswith(".map"):
                archive.add(file, f"package/{inside}", recursive=False)
    return content.getvalue()
