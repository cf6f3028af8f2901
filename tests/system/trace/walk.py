"""The walk of docs/architecture.md: which files it names, and which it calls supporting."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "architecture.md"


def listed(section: str) -> list[str]:
    """The files below firestore_outbox/ that a section names, in order: `<!-- walk -->` to `<!-- /walk -->`."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"<!-- {section} -->(.*?)<!-- /{section} -->", text, re.S)
    assert found is not None, f"{PAGE.name} has no section {section}"
    names = re.findall(r"`(?:worker/)?(?:firestore_outbox/)?([\w/]+\.py)`", found[1])
    return list(dict.fromkeys(names))
