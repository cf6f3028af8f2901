"""Wheels of this repository's distributions, and new environments with them.

An environment finds the dependencies in the one that runs the tests, so that nothing is downloaded.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")


def build_wheel(source: str, base: Path) -> Path:
    """The wheel of `worker`, `emulator` or an example, built below `base`."""
    # Out of a copy: a build leaves its own folders beside the source.
    copy = shutil.copytree(ROOT / source, base / source, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    built = base / "wheels" / source
    offline = ("--no-deps", "--no-build-isolation", "--no-index")
    run(*PIP, "wheel", *offline, "--wheel-dir", str(built), str(copy))
    [wheel] = built.glob("*.whl")
    return wheel


def install(wheels: Iterable[Path], environment: Path) -> Path:
    """Makes a new environment with these wheels in it."""
    run(sys.executable, "-m", "venv", "--without-pip", str(environment))
    python = str(environment / "bin" / "python")
    run(*PIP, "--python", python, "install", "--no-deps", "--no-index", *map(str, wheels))
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment


def run(*command: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=5 * PATIENCE_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done
