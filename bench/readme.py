"""Write the figures into README.md and the pages of docs/ that have places for them, from `bench/results`.

    python -m bench.readme [--check]

A document has places for them, between two comments that Markdown does not show:

    <!-- figures: NAME -->
    <!-- end of figures -->

What stands between is replaced. With --check nothing is written, and it fails if something would be.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from bench.report import say
from bench.shown import KNOWN, Results, load
from bench.tables import block

ROOT = Path(__file__).parents[1]
DOCUMENTS = (
    ROOT / "README.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("figures", "emulator", "privacy", "rules-emulator")),
)
_PLACE = re.compile(r"(<!-- figures: (?P<name>[a-z]+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def filled(text: str, results: Results) -> str:
    """The same document with today's figures."""

    def replaced(place: re.Match[str]) -> str:
        figures = block(place["name"], results)
        return f"{place[1]}{figures}\n{place[3]}" if figures else f"{place[1]}{place[3]}"

    return _PLACE.sub(replaced, text)


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes the figures into README.md and the documents.")
    parser.add_argument("--check", action="store_true", help="only say whether something would change")
    options = parser.parse_args()
    results = load()
    if absent := [name for name in KNOWN if name not in results]:
        say(f"not measured, and not shown: {', '.join(absent)}")
    stale = 0
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        new = filled(text, results)
        if new != text:
            stale += 1
            say(f"{document.relative_to(ROOT)} {'differs from bench/results' if options.check else 'is written anew'}")
            if not options.check:
                document.write_text(new, encoding="utf-8")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
