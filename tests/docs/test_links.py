"""Links between the documents lead somewhere, and the files that docs/architecture.md names exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.snippets import DOCUMENTS, ROOT
from tests.system.trace.walk import listed

WALK_LIMIT, SUPPORTING_LIMIT = 25, 15
"""Files that a newcomer has to open to follow one message, and modules that those lean on."""

_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
ALL = [*DOCUMENTS, ROOT / "CHANGELOG.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs/decisions").glob("*.md"))]


def anchors(document: Path) -> set[str]:
    """The fragments that GitHub makes of a document's headings."""
    headings = _HEADING.findall(_FENCED.sub("", document.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(document: Path) -> Iterator[str]:
    for target, fragment in _LINK.findall(document.read_text(encoding="utf-8")):
        file = (document.parent / target).resolve() if target else document
        if not file.exists() or (fragment and file.suffix == ".md" and fragment not in anchors(file)):
            yield f"{target}#{fragment}" if fragment else target


@pytest.mark.parametrize("document", ALL, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    assert list(broken_links(document)) == []


def test_the_walk_and_its_supporting_modules_are_few_and_exist() -> None:
    walk, supporting = listed("walk"), listed("supporting")
    assert 0 < len(walk) <= WALK_LIMIT
    assert 0 < len(supporting) <= SUPPORTING_LIMIT
    details = listed("details")
    assert len({*walk, *supporting, *details}) == len(walk) + len(supporting) + len(details), "a file is named twice"
    assert [
        file for file in [*walk, *supporting, *details] if not (ROOT / "worker/firestore_outbox" / file).is_file()
    ] == []


def test_every_file_that_the_architecture_names_exists() -> None:
    text = _FENCED.sub("", (ROOT / "docs/architecture.md").read_text(encoding="utf-8"))
    named = set(re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|js|json))`", text))
    places = (ROOT, ROOT / "worker/firestore_outbox")
    assert {name for name in named if not any((place / name).is_file() for place in places)} == set()
