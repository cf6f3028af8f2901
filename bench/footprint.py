"""What an installation of the emulator brings, and what a start of it costs.

    python -m bench.footprint [--small]

It fails if the emulator brings more than ten packages beyond those that google-cloud-firestore brings.

Method. Packages are followed from the dependencies in emulator/pyproject.toml through the metadata of this environment,
for this machine and without extras. Those that google-cloud-firestore leads to are left out, as a project that uses
Firestore has them. Megabytes are the files of the packages on the disk, without compiled bytecode. Start-up is the
processor time of `firestore-emulator` and its children from its first instruction to its first answered call, with
Google's emulator beside it, in turns; the figure is the median.
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bench import places, report
from bench.loads import Calls
from bench.report import say
from firestore_emulator.official import Installed, find_installed

EMULATOR = Path(__file__).parents[1] / "emulator"
FIRESTORE = "google-cloud-firestore"
MOST_PACKAGES = 10
"""Beyond those of google-cloud-firestore."""
STARTS = 7


@dataclass(frozen=True, kw_only=True)
class Footprint:
    beyond: tuple[str, ...]
    """Packages that google-cloud-firestore does not bring."""
    shared: tuple[str, ...]
    """Packages that it brings, itself among them."""


def footprint() -> Footprint:
    needed = tomllib.loads((EMULATOR / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    shared = packages_of([FIRESTORE])
    return Footprint(beyond=tuple(sorted(packages_of(needed) - shared)), shared=tuple(sorted(shared)))


def packages_of(requirements: Iterable[str]) -> set[str]:
    """All packages that an installation of these would have."""
    found: set[tuple[str, frozenset[str]]] = set()
    todo = [Requirement(text) for text in requirements]
    while todo:
        wanted = todo.pop()
        name, extras = str(canonicalize_name(wanted.name)), frozenset(wanted.extras)
        if (name, extras) in found:
            continue
        found.add((name, extras))
        todo += _required_by(distribution(name), extras)
    return {name for name, _ in found}


def _required_by(package: Distribution, extras: frozenset[str]) -> Iterator[Requirement]:
    for text in package.requires or ():
        wanted = Requirement(text)
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield wanted


def megabytes_of(name: str) -> float:
    files = distribution(name).files or ()
    return _megabytes(Path(str(file.locate())) for file in files)


def own_megabytes() -> float:
    return _megabytes((EMULATOR / "firestore_emulator").rglob("*"))


def _megabytes(files: Iterable[Path]) -> float:
    return sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc") / 1_000_000


async def start_ups(starts: int) -> dict[str, list[float]]:
    """Processor seconds of each start."""
    servers: dict[str, Any] = {"ours": places.ours_alone}
    if isinstance(find_installed(), Installed):
        servers["googles"] = places.googles
    spent: dict[str, list[float]] = {name: [] for name in servers}
    for number in range(1, starts + 1):
        for name, start in servers.items():
            async with start() as place:
                await Calls(place.channel).answers()
                seconds = place.cpu_seconds()
            if seconds is not None:
                spent[name].append(seconds)
                say(f"start {number}: {name}: {seconds:.2f} s of processor time")
    return spent


def main() -> int:
    options = report.arguments(
        "What an installation of the emulator brings, and what a start of it costs."
    ).parse_args()
    brought = footprint()
    sizes = {name: round(megabytes_of(name), 2) for name in brought.beyond}
    starts = asyncio.run(start_ups(1 if options.small else STARTS))
    result = report.heading("what an installation of the emulator brings, and what a start costs", __doc__) | {
        "packagesBeyondFirestore": [
            {"name": name, "version": distribution(name).version, "megabytes": size} for name, size in sizes.items()
        ],
        "mostPackages": MOST_PACKAGES,
        "megabytesBeyondFirestore": round(sum(sizes.values()) + own_megabytes(), 1),
        "megabytesOwn": round(own_megabytes(), 2),
        "firestore": {
            "packages": len(brought.shared),
            "megabytes": round(sum(map(megabytes_of, brought.shared)), 1),
        },
        "startUpCpuSeconds": {
            name: {"median": round(statistics.median(values), 2), "rounds": [round(value, 2) for value in values]}
            for name, values in starts.items()
            if values
        },
    }
    report.keep(result, "footprint", options)
    print(re.sub(r"\n {4,}", " ", json.dumps(result, indent=2, ensure_ascii=False)))
    if len(brought.beyond) > MOST_PACKAGES:
        say(f"{len(brought.beyond)} packages, and {MOST_PACKAGES} are allowed: {', '.join(brought.beyond)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
