"""Cases in JavaScript, run by Node in one process for a file, and reported one by one by pytest."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
LIMIT_SECONDS = 900.0
"""Ends a file that hangs: all its cases run one after another."""
FILE_TIMEOUT = pytest.mark.timeout(1000)
"""The first case of a file waits for the others. Above the limit, so that the output of the cases is shown."""


def names_in(file: Path) -> list[str]:
    """The cases of a file, in its order."""
    return re.findall(r"^test\('(.+)', async", file.read_text(encoding="utf-8"), re.MULTILINE)


def require_node() -> str:
    """Node and the packages of package.json, or the test is left out with the reason."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node: install nodejs (20 or newer) and npm")
    wanted = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    missing = [package for package in wanted if not (ROOT / "node_modules" / package).is_dir()]
    if missing:
        pytest.skip(f"not in node_modules: {', '.join(missing)}; run npm ci")
    return node


class Results:
    """What became of each case of a file."""

    def __init__(self, results: Mapping[str, dict[str, Any]], rest: str) -> None:
        self._results = results
        self._rest = rest

    def check(self, name: str) -> None:
        result = self._results.get(name)
        assert result is not None, f"it never ended; Node said:\n{self._rest}"
        if result["error"] is not None:
            pytest.fail("\n".join(filter(None, [result["error"], result.get("seen")])), pytrace=False)


async def run(file: Path, world: Mapping[str, Any], cases: list[str] | None = None) -> Results:
    """All cases of the file, or these."""
    node = require_node()
    environment = {**os.environ, "WORLD": json.dumps(world), "CASES": json.dumps(cases)}
    process = await asyncio.create_subprocess_exec(
        node,
        str(file),
        cwd=ROOT,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    results: dict[str, dict[str, Any]] = {}
    rest: list[str] = []
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            assert process.stdout is not None
            async for raw in process.stdout:
                line = raw.decode(errors="replace")
                if line.startswith('{"name":'):
                    result = json.loads(line)
                    results[result["name"]] = result
                else:
                    rest.append(line)
            await process.wait()
    except TimeoutError:
        rest.append(f"(ended after {LIMIT_SECONDS:g} s)")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Results(results, "".join(rest))
