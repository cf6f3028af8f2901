"""The chat page as static files, for a Firebase project of your own: people sign in, and see the accounts that they are
members of. Any web server can have them; `outbox page` serves them on this machine, or writes them to a folder.

    /index.html                leads to the page
    /demo/                     the page
    /outbox.js and others      the client that it imports
    /sdk/...                   the Firebase SDK, as npm installed it
    /config.json               which project, and how people sign in
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from firestore_outbox.errors import OutboxError
from firestore_outbox.local.product import CLIENT

SDK_FILES = ("firebase-app.js", "firebase-auth.js", "firebase-firestore.js")
NEEDED = ("apiKey", "projectId")
WHERE = "the Firebase console shows it under Project settings, Your apps; or run: firebase apps:sdkconfig WEB"
ROOT_PAGE = (
    '<!doctype html><meta http-equiv="refresh" content="0; url=demo/"><title>Chat</title><a href="demo/">Chat</a>\n'
)
_PAIR = re.compile(r"""["']?(\w+)["']?\s*:\s*["']([^"']*)["']""")
_VERSION = re.compile(r"(gstatic\.com/firebasejs/)[\d.]+(/)")


class BadConfig(OutboxError):
    """The configuration of the Firebase web app is not one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageConfig:
    firebase: Mapping[str, str]
    """The configuration of the project's web app. It is public: rules and sign-in protect the data."""
    database_id: str = ""
    """Empty: the default database."""
    has_google: bool = False
    """Offer sign-in with Google beside email and password."""
    firestore: str = ""
    """HOST:PORT of a Firestore emulator; empty means the project's own."""
    auth: str = ""
    """HOST:PORT of an Auth emulator; empty means the project's own."""

    def json(self) -> str:
        """As the page reads it."""
        config: dict[str, object] = {"firebase": dict(self.firebase), "contacts": [], "hasGoogle": self.has_google}
        if self.database_id:
            config["databaseId"] = self.database_id
        if self.firestore:
            host, _, port = self.firestore.rpartition(":")
            config["firestore"] = {"host": host, "port": int(port)}
        if self.auth:
            config["authEmulator"] = f"http://{self.auth}"
        return json.dumps(config, indent=2)


def firebase_config(text: str) -> dict[str, str]:
    """The web app's configuration as Firebase gives it: JSON, or the JavaScript object of its console."""
    found = dict(_PAIR.findall(text))
    missing = [name for name in NEEDED if not found.get(name)]
    if missing:
        raise BadConfig(f"it has no {' and no '.join(missing)}; copy the whole object: {WHERE}")
    names = (*NEEDED, "authDomain", "storageBucket", "messagingSenderId", "appId", "measurementId")
    return {name: found[name] for name in names if name in found}


def sdk() -> Path | None:
    """The Firebase SDK as npm installed it: here, in a folder above, or in the checkout. None if there is none."""
    here = Path.cwd()
    for folder in (here, *here.parents, CLIENT.resolve().parent):
        found = folder / "node_modules" / "firebase"
        if all((found / name).is_file() for name in SDK_FILES):
            return found
    return None


def missing() -> str | None:
    """What this machine lacks for the page, and how to get it; None if it can be served."""
    if sdk() is not None:
        return None
    return "the chat page needs the Firebase SDK in node_modules: run npm install firebase (in a checkout: npm ci)"


def page_html(installed: Path | None) -> str:
    """The page. The SDK's files name each other by their address at Google, with their version in it: the page maps the
    addresses of the version that is installed to its own copies."""
    html = (CLIENT / "demo" / "index.html").read_text(encoding="utf-8")
    if installed is None:
        return html
    version = json.loads((installed / "package.json").read_text(encoding="utf-8"))["version"]
    return _VERSION.sub(rf"\g<1>{version}\g<2>", html)


def site(config: PageConfig, installed: Path) -> dict[str, bytes]:
    """All files of the page, by their path."""
    files = {path.name: path.read_bytes() for path in CLIENT.glob("*.js")}
    files |= {f"demo/{path.name}": path.read_bytes() for path in (CLIENT / "demo").iterdir() if path.is_file()}
    files |= {f"sdk/{name}": (installed / name).read_bytes() for name in SDK_FILES}
    return files | {
        "demo/index.html": page_html(installed).encode(),
        "config.json": config.json().encode(),
        "index.html": ROOT_PAGE.encode(),
    }
