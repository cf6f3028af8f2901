"""Documents, code and comments are in plain English: these phrases make a reader stop, and each has a better one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.snippets import DOCUMENTS, ROOT

INSTEAD = {
    "whoever": "name the subject: the worker, the holder, the client",
    "nobody": "name the subject, or say what is unknown",
    "somebody": "name the subject: a person, an operator, another account",
    "is told": "gets, receives",
    "mend": "repair, correct, fix",
    "so many": "state the number",
    "but for": "except for",
    "in the usual course": "normally",
    "of which": "begin a new sentence",
    "is over": "has ended, has expired",
    "so late": "state the time",
}
_PHRASE = re.compile(rf"\b(?:{'|'.join(INSTEAD)})(?:s|ed)?\b", re.IGNORECASE)
_NAMES = re.compile(r"`[^`\n]*`|\[?tests/[\w/.:]+\]?|^```.*?^```$", re.MULTILINE | re.DOTALL)
"""Code, and names of tests."""
CHECKED = [*DOCUMENTS, ROOT / "SECURITY.md"]
FOLDERS = ("worker", "emulator", "functions", "client", "deploy", "examples", "bench", "tests")
"""Code and comments of these are checked too, with the names in them."""
THIS = Path(__file__)
CODE = frozenset({".css", ".html", ".js", ".mjs", ".py", ".rules", ".sh", ".ts", ".txt"})
_IN_CODE = re.compile(rf"(?:\b|_)(?:{'|'.join(INSTEAD).replace(' ', '[ _]')})(?:s|ed)?(?:\b|_)", re.IGNORECASE)
QUOTES_OLD_WORDS = "## Words that were replaced"


@pytest.mark.parametrize("file", CHECKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_text_has_none_of_these_phrases(file: Path) -> None:
    text = _NAMES.sub("", file.read_text(encoding="utf-8").partition(QUOTES_OLD_WORDS)[0])
    found = sorted({phrase.lower() for phrase in _PHRASE.findall(text)})
    assert found == [], f"write instead: {[INSTEAD.get(phrase, '') for phrase in found]}"


def code() -> Iterator[Path]:
    yield ROOT / "firestore.rules"
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*")):
            is_checked = file.suffix in CODE and file.is_file() and file != THIS and "node_modules" not in file.parts
            if is_checked:
                yield file


def test_code_and_comments_have_none_of_these_phrases() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in code()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if _IN_CODE.search(line)
    ]
    assert found == []
