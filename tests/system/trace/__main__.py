"""`make trace`: one message, and the files it passes through."""

from __future__ import annotations

import asyncio

from tests.system.trace.run import traced_files
from tests.system.trace.walk import listed


def main() -> None:
    files = asyncio.run(traced_files())
    walk, supporting = listed("walk"), listed("supporting")
    for file in files:
        print(f"{'walk' if file in walk else 'supporting' if file in supporting else 'UNLISTED':12}{file}")
    print(
        f"{len(files)} files: {len(set(files) & set(walk))} in the walk, {len(set(files) & set(supporting))} supporting"
    )


if __name__ == "__main__":
    main()
