"""The commands of a document (`sh` blocks), and what it says that they print (the `text` block after each)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.docs.snippets import ROOT

_BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANYTHING = "…"
"""In a `text` block: any characters, over any number of lines."""


@dataclass(frozen=True, slots=True)
class Step:
    commands: str
    prints: str | None
    """None: the document does not say."""

    def is_fulfilled_by(self, output: str) -> bool:
        if self.prints is None:
            return True
        pattern = ".*".join(re.escape(part) for part in self.prints.strip().split(ANYTHING))
        return re.fullmatch(pattern, output.strip(), re.DOTALL) is not None


def steps(document: str) -> list[Step]:
    found: list[Step] = []
    for kind, text in _BLOCK.findall((ROOT / document).read_text(encoding="utf-8")):
        if kind == "sh":
            found.append(Step(text, None))
        elif found and found[-1].prints is None:
            found[-1] = Step(found[-1].commands, text)
    return found
