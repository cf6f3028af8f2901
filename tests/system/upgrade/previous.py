"""The previous version, out of the repository's history: its own source tree, on the interpreter of this environment.

The interpreter's third-party packages serve both versions, which is sound while the previous version's pins are among
the present ones; `unpack` checks that. With different pins the previous version needs an environment of its own.
"""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.conformance.tally import REQUIRE_ALL

ROOT = Path(__file__).resolve().parents[3]
COMMIT = "b808e9c91e3c8cdd5036630539dd71060adb543c"
"""The last commit of 0.1. Set it to the release's commit when a version is released."""
PINS = "requirements.txt"


def unpack(directory: Path) -> Path:
    """The source tree of the previous version. Without that commit, the test is left out with the reason; where all
    is required, it fails with it."""
    found = subprocess.run(["git", "archive", "--format=tar", COMMIT], cwd=ROOT, capture_output=True, check=False)
    if found.returncode != 0:
        said = found.stderr.decode(errors="replace").strip().splitlines()[-1:]
        reason = (
            f"the previous version is not in this clone (commit {COMMIT[:12]}: {' '.join(said)});"
            " fetch the whole history: git fetch --unshallow"
        )
        if os.environ.get(REQUIRE_ALL) == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(directory, filter="data")
    missing = _pins(directory / PINS) - _pins(ROOT / "constraints.txt")
    assert not missing, f"the previous version has other pins and needs an environment of its own: {sorted(missing)}"
    return directory


def environment(tree: Path) -> dict[str, str]:
    """For a Python process that shall import that tree, and nothing from its working directory."""
    return {"PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}


def _pins(file: Path) -> set[str]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return {line.split()[0] for line in lines if "==" in line and not line.startswith("#")}
