"""client/*.d.ts says of the JavaScript what is true, and stops a frontend in TypeScript that misuses it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.client.node import HERE, ROOT, require_node


def tsc(*arguments: str) -> str:
    """What the compiler complains of."""
    compiler = ROOT / "node_modules/typescript/bin/tsc"
    node = require_node()
    said = subprocess.run([node, str(compiler), *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return said.stdout + said.stderr


def test_the_declarations_are_those_of_the_code_and_the_code_keeps_its_types(tmp_path: Path) -> None:
    assert tsc("-p", "client/tsconfig.json", "--outDir", str(tmp_path)) == ""
    made = sorted(tmp_path.glob("*.d.ts"))
    assert [file.name for file in made] == [
        f"{name}.d.ts" for name in ("campaigns", "files", "message", "notifications", "outbox", "sealing", "watch")
    ]
    for file in made:
        stored = ROOT / "client" / file.name
        assert stored.read_text() == file.read_text(), f"{stored.name} is old: run make types"


@pytest.mark.parametrize("resolution", ["nodenext", "esnext"])
def test_a_frontend_in_typescript_compiles_and_its_mistakes_do_not(resolution: str) -> None:
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", resolution, "--skipLibCheck"]
    if resolution == "esnext":
        options += ["--moduleResolution", "bundler"]
    assert tsc(*options, str(HERE / "usage.ts")) == ""
