"""`outbox dev` notices changes in the files of the user's handlers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from firestore_outbox.local.reload import HandlerFiles


def files(folder: Path, modules: str) -> HandlerFiles:
    return HandlerFiles({"OUTBOX_HANDLERS": modules, "PYTHONPATH": os.pathsep.join(["/nowhere", str(folder)])})


@pytest.mark.parametrize("module", ["bot.py", "bot/__init__.py"])
def test_a_change_beside_the_module_is_noticed_once(tmp_path: Path, module: str) -> None:
    handler = tmp_path / module
    handler.parent.mkdir(exist_ok=True)
    handler.write_text("one = 1")
    watched = files(tmp_path, "bot")
    assert watched.changed() == []
    other = handler.with_name("answers.py")
    other.write_text("two = 2")
    assert watched.changed() == [other]
    assert watched.changed() == []
    other.unlink()
    assert watched.changed() == [other]


def test_a_file_that_was_written_again_has_changed(tmp_path: Path) -> None:
    handler = tmp_path / "bot.py"
    handler.write_text("one = 1")
    watched = files(tmp_path, " bot , missing ")
    os.utime(handler, ns=(1, 1))
    assert watched.changed() == [handler]


def test_without_handlers_nothing_is_watched(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("one = 1")
    watched = files(tmp_path, "")
    (tmp_path / "bot.py").unlink()
    assert watched.changed() == []
