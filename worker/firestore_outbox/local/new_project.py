"""The files of a user's own project, as `outbox init` writes them.

Templates stand in `templates/` under the name of the file they become, with `.txt` behind it. Rules, indexes and deploy
scripts are the product's own files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from firestore_outbox.local.product import ASSETS

TEMPLATES = Path(__file__).parent / "templates"
SUFFIX = ".txt"
DOTTED = ("dockerignore", "gcloudignore", "gitignore")
"""Files whose names begin with a dot, which the templates leave out."""
FILLED_IN = ("README.md", "requirements.txt", "requirements-dev.txt")
SCRIPTS = ("base", "console", "firestore", "functions", "image", "names", "project", "queue", "schedule", "worker")
COPIED = (
    "firebase.json",
    "firestore.indexes.json",
    "firestore.rules",
    *(f"deploy/{name}.sh" for name in SCRIPTS),
)
"""Files of the product that a project deploys as they are."""


def project_files(name: str, version: str) -> Mapping[str, str]:
    """Path below the project -> content, for a project of this name on this version of firestore-outbox."""
    return dict(sorted([*_filled(name, version), *((path, _read(ASSETS / path)) for path in COPIED)]))


def _filled(name: str, version: str) -> Iterator[tuple[str, str]]:
    for template in sorted(TEMPLATES.rglob(f"*{SUFFIX}")):
        path = template.relative_to(TEMPLATES).as_posix().removesuffix(SUFFIX)
        content = _read(template)
        if path in FILLED_IN:
            content = content.replace("{name}", name).replace("{version}", version)
        yield f".{path}" if path in DOTTED else path, content


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
