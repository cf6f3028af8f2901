"""The code examples of the documents, as they are printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "client/README.md",
    ROOT / "worker/README.md",
    ROOT / "emulator/README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").glob("*/README.md")),
]
LANGUAGES = ("python", "js", "ts", "html", "sh")
"""Those whose examples are run."""
NOT_RUN = ("text", "mermaid", "json")
"""Output, drawings, and the form of data."""

_FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Snippet:
    document: str
    """Its path in the repository."""
    language: str
    code: str

    def __str__(self) -> str:
        return f"{self.document}: {self.code.partition(chr(10))[0]}"


def snippets() -> Iterator[Snippet]:
    for document in DOCUMENTS:
        for language, code in _FENCED.findall(document.read_text(encoding="utf-8")):
            if language in LANGUAGES:
                yield Snippet(str(document.relative_to(ROOT)), language, code)


def languages() -> set[str]:
    """Of every fenced block in the documents."""
    return {language for document in DOCUMENTS for language, _ in _FENCED.findall(document.read_text(encoding="utf-8"))}


def snippet(document: str, language: str, word: str) -> Snippet:
    """The only example of a document in this language that has this word in it."""
    found = [one for one in snippets() if (one.document, one.language) == (document, language) and word in one.code]
    assert len(found) == 1, f"{document} has {len(found)} examples in {language} with {word!r}"
    return found[0]
