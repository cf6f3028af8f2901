"""`make trace`: one message, and the files it passes through; with `--short` by the short path."""

from __future__ import annotations

import asyncio
import sys

from tests.system.trace.run import traced_files
from tests.system.trace.walk import listed


def main() -> None:
    files = asyncio.run(traced_files(short_turns="--short" in sys.argv))
    sections = {section: set(listed(section)) for section in ("walk", "supporting", "details")}
    for file in files:
        print(f"{next((name for name, named in sections.items() if file in named), 'UNLISTED'):12}{file}")
    counts = ", ".join(f"{len(named.intersection(files))} {name}" for name, named in sections.items())
    print(f"{len(files)} files: {counts}")


if __name__ == "__main__":
    main()
