"""What the repository tells contributors and machines about itself agrees with the rest of it."""

from __future__ import annotations

import re
import tomllib

import firestore_emulator
import firestore_outbox
from tests.docs.snippets import DOCUMENTS, ROOT

CI = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
PRE_COMMIT = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

LARGEST_PICTURE_BYTES = 150_000


def targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))


def test_ci_runs_the_checks_and_the_fast_tier_on_every_python_that_is_supported() -> None:
    ran = re.findall(r"run: make ([a-z-]+)", CI)
    assert {"check", "test"} <= set(ran) <= targets()
    versions = re.findall(r"'(3\.\d+)'", CI.partition("python: [")[2].partition("]")[0])
    assert versions == ["3.11", "3.12", "3.13", "3.14"]
    for folder in ("worker", "emulator"):
        project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert project["requires-python"] == f">={versions[0]}"


def test_the_linter_before_a_commit_is_the_one_of_make_check() -> None:
    pinned = re.search(r"^ruff==(\S+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned is not None
    assert f"ruff-pre-commit\n    rev: v{pinned[1]}\n" in PRE_COMMIT


def test_the_documents_name_make_targets_that_exist() -> None:
    for name in ("README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/guarantees.md", "docs/figures.md"):
        named = set(
            re.findall(r"(?:`|^ {4})make ([a-z][a-z-]*)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        )
        assert named <= targets(), name


def test_the_changelog_begins_with_the_version_of_the_packages() -> None:
    newest = re.search(r"^## (\S+)", CHANGELOG, re.MULTILINE)
    assert newest is not None
    assert newest[1] == firestore_outbox.__version__ == firestore_emulator.__version__


def test_every_picture_is_small_and_shown_in_a_document() -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in DOCUMENTS)
    for picture in (ROOT / "docs").rglob("*.png"):
        assert picture.stat().st_size < LARGEST_PICTURE_BYTES, picture.name
        assert f"{picture.name})" in text, f"no document shows {picture.name}"


def test_the_web_clients_readme_names_every_function_that_the_package_exports() -> None:
    types = (ROOT / "client/outbox.d.ts").read_text(encoding="utf-8")
    names = set(re.findall(r"^export function (\w+)", types, re.MULTILINE))
    for group in re.findall(r"^export \{ (.+?) \} from", types, re.MULTILINE):
        names |= set(group.split(", "))
    readme = (ROOT / "client/README.md").read_text(encoding="utf-8")
    assert len(names) > 20
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", readme)] == []
