"""`outbox init`: write a user's own project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from firestore_outbox import __version__
from firestore_outbox.cli.output import Json, console, fail, show_json

EXECUTABLE = 0o755


def register(app: typer.Typer) -> None:
    app.command()(init)


def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", file_okay=False, help="A new or existing directory.")],
    as_json: Json = False,
) -> None:
    """Write a project of your own: a handler, functions, rules, indexes, an image, deploy scripts and a test.

    Existing files are never changed: the command fails before it writes if one is in the way."""
    from firestore_outbox.local.new_project import project_files

    files = project_files(directory.resolve().name, __version__)
    taken = [path for path in files if (directory / path).exists()]
    if taken:
        fail(f"{directory} has {', '.join(taken)} already, and nothing was written; choose another directory")
    try:
        for path, content in files.items():
            file = directory / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
            if file.suffix == ".sh":
                file.chmod(EXECUTABLE)
    except OSError as error:
        fail(f"{error.filename} cannot be written ({error.strerror}); choose another directory")
    if as_json:
        show_json({"directory": str(directory), "files": list(files)})
        return
    for path in files:
        console.print(f"  {path}")
    console.print(f"Next: cd {directory}, and follow README.md. `pytest` runs its test, `outbox dev` its stack.")
