"""The measurements of `make bench` at an earlier commit, beside those of this tree, in one run.

    python -m bench.before [--commit COMMIT] [--rounds N] [--only NAME ...] [--small]

It fails when 10,000 accounts with one message each are not sent twice as fast as before, when a message or an idle day
costs more, or when another figure is worse than before by more than a fifth.

Method. The earlier tree is unpacked from the repository's history and runs its own measurements with its own emulator,
on the same interpreter and the same third-party packages. Each measurement runs at both commits, one after the other,
and the rounds alternate which of them is first. A figure is the median of the rounds; each measurement also has rounds
of its own. Costs do not vary, times do. What this tree's measurements find is kept as `make bench` keeps it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.report import RESULTS, arguments, heading, keep, say

COMMIT = "d629709"
"""The last one before the code was cut into two packages, by product."""
ROUNDS = 1
ROOT = Path(__file__).parents[1]
MOST_WORSE = 1.2
LANES_BETTER = 2.0
MANY = 10_000


@dataclass(frozen=True)
class Figure:
    what: str
    value: float
    is_rate: bool = False
    """The more, the better."""
    least_better: float = 1 / MOST_WORSE


def _cost(result: dict[str, Any]) -> Iterator[Figure]:
    for row in result["rows"]:
        if row["who"] == "our worker":
            yield Figure(f"{row['what']}, $ a million messages", row["dollarsAMillion"], least_better=1)


def _idle(result: dict[str, Any]) -> Iterator[Figure]:
    for row in result["rows"]:
        if row["who"] == "our worker":
            yield Figure(f"an idle day of {row['accounts']:,} accounts, $", row["dollarsADay"], least_better=1)


def _lanes(result: dict[str, Any]) -> Iterator[Figure]:
    for row in result["rows"]:
        least = LANES_BETTER if row["accounts"] == MANY else 1 / MOST_WORSE
        what = f"{row['accounts']:,} accounts with one message each"
        yield Figure(f"{what}, messages/s", row["perSecond"], is_rate=True, least_better=least)
        yield Figure(f"{what}, $ a million", row["dollarsAMillion"], least_better=1)


def _queries(result: dict[str, Any]) -> Iterator[Figure]:
    for row in result["ours"]["queries"]:
        yield Figure(f"a query among {row['documents']:,} documents, ms", row["medianMs"])


def _latency(result: dict[str, Any]) -> Iterator[Figure]:
    for run in result["runs"]:
        what = f"from write to call at {run['perSecond']:g}/s, provider {run['providerMs']} ms, median ms"
        yield Figure(what, run["writeToCallMs"]["median"])


def _throughput(result: dict[str, Any]) -> Iterator[Figure]:
    for run in result["runs"]:
        if run["who"] == "our worker":
            yield Figure(f"a backlog on {run['where']}, messages/s", run["perSecond"], is_rate=True)


MEASUREMENTS: dict[str, Callable[[dict[str, Any]], Iterator[Figure]]] = {
    "cost": _cost,
    "idle": _idle,
    "lanes": _lanes,
    "queries": _queries,
    "latency": _latency,
    "throughput": _throughput,
}


def unpacked(commit: str, directory: Path) -> Path:
    """An interpreter with the tree of that commit, and its `outbox` command beside it."""
    tree, home = directory / "tree", directory / "home"
    tree.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        raise SystemExit(f"no commit {commit!r} here: {archive.stderr.decode().strip()}")
    subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    [packages] = home.glob("lib/python*/site-packages")
    (packages / "tree.pth").write_text(f"{tree}\n{sysconfig.get_path('purelib')}\n")
    python, command = home / "bin" / "python", home / "bin" / "outbox"
    command.write_text(f"#!{python}\nimport sys\nfrom worker.cli import main\nsys.exit(main())\n")
    command.chmod(0o755)
    return python


def measured(python: Path, tree: Path, name: str, *, small: bool) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="outbox-bench-") as temporary:
        output = Path(temporary) / f"{name}.json"
        command = [str(python), "-m", f"bench.{name}", "--output", str(output), *(["--small"] if small else [])]
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
        if not output.exists():
            raise SystemExit(f"bench.{name} wrote no figures in {tree}: {done.stderr[-2_000:]}")
        result = output.read_text(encoding="utf-8")
    if tree == ROOT and not small:
        (RESULTS / f"{name}.json").write_text(result, encoding="utf-8")
    return list(MEASUREMENTS[name](json.loads(result)))


def rows(python: Path, tree: Path, names: list[str], rounds: int, *, small: bool) -> Iterator[dict[str, Any]]:
    places = {"before": (python, tree), "now": (Path(sys.executable), ROOT)}
    for name in names:
        found: dict[str, dict[str, list[float]]] = {}
        kinds: dict[str, Figure] = {}
        for number in range(rounds):
            for when in list(places) if number % 2 == 0 else reversed(list(places)):
                say(f"bench.{name}, {when}, round {number + 1} of {rounds}")
                for figure in measured(*places[when], name, small=small):
                    kinds[figure.what] = figure
                    found.setdefault(figure.what, {}).setdefault(when, []).append(figure.value)
        for what, values in found.items():
            if len(values) == len(places):
                yield _row(what, kinds[what], median(values["before"]), median(values["now"]))


def _row(what: str, figure: Figure, before: float, now: float) -> dict[str, Any]:
    better = now / before if figure.is_rate else before / now if now else 1.0
    row = {"what": what, "before": before, "now": now, "timesBetter": round(better, 2)}
    return row | {"isGood": better >= figure.least_better}


def main() -> int:
    parser = arguments("An earlier commit's measurements beside this tree's.")
    parser.add_argument("--commit", default=COMMIT, help=f"the earlier one; default {COMMIT}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS), metavar="NAME")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outbox-bench-") as temporary:
        python = unpacked(options.commit, Path(temporary))
        tree = Path(temporary) / "tree"
        table = list(rows(python, tree, options.only, options.rounds, small=options.small))
    for row in table:
        mark = "" if row["isGood"] else "   worse than allowed"
        print(f"{row['what']:72}{row['before']:>12,.4g}{row['now']:>12,.4g}{row['timesBetter']:>8.2f}{mark}")
    result = heading("an earlier commit beside this tree", __doc__)
    if len(options.only) == len(MEASUREMENTS) or options.output:
        keep(result | {"commit": options.commit, "rows": table}, "before", options)
    return 0 if options.small or all(row["isGood"] for row in table) else 1


if __name__ == "__main__":
    sys.exit(main())
