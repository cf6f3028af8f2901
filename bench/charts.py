"""Draws the charts of docs/figures.md from `bench/results`.

    python -m bench.charts [--all]

Each picture carries a digest of the results that it was drawn from, so that a test can tell an old one; only those are
drawn again, unless all are asked for.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator
from PIL import Image

from bench.report import say
from bench.shown import PATTERNS, Results, dollars, load

mpl.use("Agg")

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
OURS, OTHERS, CEILING, INK, PALE = "#1b6ca8", "#a9b4bf", "#e0a458", "#2b2f36", "#e6e9ed"
PARTS = {
    "reads": ("reads", "read", 1, "#7fb2d9"),
    "writes": ("writes", "write", 1, "#1b6ca8"),
    "deletes": ("deletes", "delete", 1, "#c8ccd2"),
    "Cloud Tasks": ("tasks", "task_operation", 2, "#e0a458"),
    "calls of functions and worker": ("invocations", "request", 1, "#8a94a0"),
}
"""What a bill has: its name in a result, its price, how often it is paid, its colour."""
DIGEST = "Digest"


def digest(result: Any) -> str:
    return hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()


def drawn_from(path: Path) -> str | None:
    """The digest that a picture carries; None if there is no such picture."""
    if not path.is_file():
        return None
    with Image.open(path) as image:
        found = image.info.get(DIGEST)
    return found if isinstance(found, str) else None


# --- the looks


def canvas(title: str, *, panels: int = 1, height: float = 3.6) -> tuple[Figure, list[Axes]]:
    figure, found = plt.subplots(1, panels, figsize=(9, height), squeeze=False, layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold", color=INK)
    axes = list(found[0])
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.spines[["left", "bottom"]].set_color("#b9c0c8")
        one.tick_params(colors=INK, labelsize=9)
        one.set_axisbelow(True)
    return figure, axes


def heading(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=10, color=INK)


def bars(
    axes: Axes, names: Sequence[str], values: Sequence[float], colours: Sequence[str], shown: Sequence[str]
) -> None:
    """From top to bottom, each with its figure at its end."""
    drawn = axes.barh(range(len(names)), values, color=colours, height=0.65)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.bar_label(drawn, labels=list(shown), padding=4, fontsize=9, color=INK)
    axes.spines["bottom"].set_visible(False)
    axes.set_xticks([])
    axes.tick_params(left=False)
    axes.margins(x=0.18)


def by_size(axes: Axes, sizes: Sequence[int]) -> None:
    """An axis of sizes that are ten times apart."""
    axes.set_xscale("log")
    axes.set_xticks(sizes, [_short(size) for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y", color=PALE)


def _short(value: float) -> str:
    for unit, name in ((1_000_000_000, " billion"), (1_000_000, "M"), (1_000, "k")):
        if value >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:g}"


def _thousands(axes: Axes) -> None:
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _colour(who: str) -> str:
    return {"our worker": OURS, "commits alone": CEILING}.get(who, OTHERS)


# --- the charts


def throughput(result: Any) -> Figure:
    shown = {"Google's emulator": "on Google's emulator", "ours, in memory": "on the embedded stack"}
    places = [place for place in shown if any(run["where"] == place for run in result["runs"])]
    figure, axes = canvas("Messages a second, from queued to sent", panels=len(places), height=3.2)
    for place, one in zip(places, axes, strict=True):
        runs = {run["who"]: run["perSecond"] for run in result["runs"] if run["where"] == place}
        who = [name for name in PATTERNS if name in runs]
        rates = [runs[name] for name in who]
        names = (
            [PATTERNS[name].replace(" and ", "\nand ").replace(" (", "\n(") for name in who]
            if one is axes[0]
            else [""] * len(who)
        )
        bars(one, names, rates, [_colour(name) for name in who], [f"{rate:,.0f}" for rate in rates])
        heading(one, shown[place])
    widest = max(one.get_xlim()[1] for one in axes)
    for one in axes:  # a bar's length means the same in both
        one.set_xlim(0, widest)
    return figure


def cost(result: Any) -> Figure:
    """Dollars a million, by what they are paid for."""
    price = result["prices"]["dollarsAMillion"]
    rows = [row for row in result["rows"] if row["who"] == "our worker" or row["what"] == "in bulk"]
    figure, [axes] = canvas("Dollars for a million, at list price", height=4.2)
    names = [f"{PATTERNS[row['who']]}: {row['what']}" for row in rows]
    left = [0.0] * len(rows)
    for label, (name, priced, times, colour) in PARTS.items():
        values = [row[name] * price[priced] * times for row in rows]
        drawn = axes.barh(range(len(rows)), values, left=left, color=colour, height=0.65, label=label)
        left = [before + value for before, value in zip(left, values, strict=True)]
    axes.bar_label(drawn, labels=[f"${row['dollarsAMillion']:.2f}" for row in rows], padding=4, fontsize=9, color=INK)
    axes.set_yticks(range(len(rows)), names)
    axes.invert_yaxis()
    axes.spines["bottom"].set_visible(False)
    axes.set_xticks([])
    axes.tick_params(left=False)
    axes.margins(x=0.12)
    axes.legend(frameon=False, fontsize=9, loc="center right")
    return figure


def growth(result: Any) -> Figure:
    rows = result["rows"]
    sizes = [row["queued"] for row in rows]
    figure, axes = canvas("Sending out of a backlog that grows", panels=3, height=3.0)
    lines = (
        (axes[0], "documents a message", (("reads", "reads", OTHERS), ("writes", "writes", OURS))),
        (axes[1], "milliseconds", (("a page of 100", "pageMs", OTHERS), ("a claim", "claimMs", OURS))),
        (axes[2], "megabytes", (("server", "serverMemoryMB", OTHERS), ("worker", "workerMemoryMB", OURS))),
    )
    for one, what, of in lines:
        for label, name, colour in of:
            one.plot(sizes, [row[name] for row in rows], marker="o", color=colour, label=label, linewidth=2)
        by_size(one, sizes)
        one.set_ylim(0, 1.25 * max(row[name] or 0 for row in rows for _, name, _ in of))
        one.set_xlabel("queued documents", fontsize=9, color=INK)
        heading(one, what)
        one.legend(frameon=False, fontsize=9)
    return figure


def lanes(result: Any) -> Figure:
    rows = result["rows"]
    figure, axes = canvas("Many accounts with one message each", panels=2, height=2.4)
    names = [f"{row['accounts']:,} accounts" for row in rows]
    rates = [row["perSecond"] for row in rows]
    bars(axes[0], names, rates, [OURS] * len(rows), [f"{rate:,.0f}" for rate in rates])
    heading(axes[0], "messages a second")
    costs = [row["dollarsAMillion"] for row in rows]
    bars(axes[1], [""] * len(rows), costs, [OURS] * len(rows), [f"${cost:.2f}" for cost in costs])
    heading(axes[1], "dollars for a million")
    return figure


def idle(result: Any) -> Figure:
    accounts = sorted({row["accounts"] for row in result["rows"]})
    figure, axes = canvas("Reads on a day on which nothing is sent (logarithmic)", panels=len(accounts), height=2.6)
    for many, one in zip(accounts, axes, strict=True):
        rows = [row for row in result["rows"] if row["accounts"] == many]
        names = [PATTERNS[row["who"]] for row in rows] if one is axes[0] else [""] * len(rows)
        shown = [f"{_short(row['reads'])}, {dollars(row['dollarsADay'])}" for row in rows]
        one.set_xscale("symlog", linthresh=1_000)
        bars(one, names, [row["reads"] for row in rows], [_colour(row["who"]) for row in rows], shown)
        one.xaxis.set_minor_locator(NullLocator())
        one.set_xlim(0, 500 * max(row["reads"] for row in result["rows"]))
        heading(one, f"{many:,} account{'s' if many > 1 else ''}")
    return figure


def latency(result: Any) -> Figure:
    runs = result["runs"]
    figure, [axes] = canvas("From a message's write to the provider's call, milliseconds", height=3.0)
    names = [
        f"{run['perSecond']:g} a second" + (f",\nprovider takes {run['providerMs']} ms" if run["providerMs"] else "")
        for run in runs
    ]
    for offset, (name, label, colour) in enumerate(
        (("median", "half are faster", OURS), ("p90", "nine in ten", "#7fb2d9"), ("p99", "99 in 100", OTHERS))
    ):
        at = [place + (offset - 1) * 0.26 for place in range(len(runs))]
        values = [run["writeToCallMs"][name] for run in runs]
        drawn = axes.bar(at, values, width=0.24, color=colour, label=label)
        axes.bar_label(drawn, labels=[f"{value:.0f}" for value in values], padding=2, fontsize=8, color=INK)
    axes.set_xticks(range(len(runs)), names)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.tick_params(bottom=False)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    return figure


def queries(result: Any) -> Figure:
    figure, [axes] = canvas("50 documents by the outbox's index, milliseconds", height=3.0)
    for name, key, colour in (("ours", "ours", OURS), ("Google's emulator", "googlesEmulator", OTHERS)):
        if "queries" not in result[key]:
            continue
        sizes = [row["documents"] for row in result[key]["queries"]]
        medians = [row["medianMs"] for row in result[key]["queries"]]
        axes.plot(sizes, medians, marker="o", color=colour, label=name, linewidth=2)
        for size, median in zip(sizes, medians, strict=True):
            text = f"{median:,.0f}" if median >= 10 else f"{median:.1f}"
            axes.annotate(text, (size, median), (0, 7), textcoords="offset points", ha="center", fontsize=9, color=INK)
    by_size(axes, sizes)
    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.margins(x=0.08, y=0.25)
    _thousands(axes)
    axes.set_xlabel("documents in the collection", fontsize=9, color=INK)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    return figure


def emulator(result: Any) -> Figure:
    """By how much ours is ahead, in memory."""
    found = [
        (figure["what"], figure["servers"]["ours, in memory"]["timesBetterThanGoogles"])
        for figure in result["figures"]
        if figure["servers"]["ours, in memory"].get("timesBetterThanGoogles")
    ]
    figure, [axes] = canvas(
        "Times better than Google's emulator (logarithmic; the line is Google's)",
        height=0.6 + 0.28 * max(len(found), 4),
    )
    axes.set_xscale("log")
    times = [ratio for _, ratio in found]
    bars(axes, [what for what, _ in found], times, [OURS] * len(found), [f"{ratio:,.1f}" for ratio in times])
    axes.axvline(1, color=INK, linewidth=1)
    axes.xaxis.set_minor_locator(NullLocator())
    return figure


def overload(result: Any) -> Figure:
    ages = result["oldestDueSeconds"]
    figure, [axes] = canvas("More than it can drain: age of the oldest due message, seconds", height=2.8)
    at = [number * result["seconds"] / max(1, len(ages) - 1) for number in range(len(ages))]
    axes.plot(at, ages, color=OURS, linewidth=2)
    axes.grid(axis="y", color=PALE)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds since clients began to write too much", fontsize=9, color=INK)
    return figure


def soak(result: Any) -> Figure:
    samples = result["samples"]
    figure, axes = canvas("A long steady stream", panels=2, height=3.0)
    minutes = [sample["at"] / 60 for sample in samples]
    names = sorted({name for sample in samples for name in sample["megabytes"]})
    for name, colour in zip(names, (OURS, OTHERS, CEILING, "#7fb2d9", "#8a94a0", INK), strict=False):
        axes[0].plot(minutes, [sample["megabytes"].get(name) for sample in samples], color=colour, label=name)
    axes[0].legend(frameon=False, fontsize=9, ncols=2)
    heading(axes[0], "megabytes held, by process")
    axes[1].plot(minutes, [sample["medianLagMs"] for sample in samples], color=OURS, label="half are faster")
    axes[1].plot(minutes, [sample["p99LagMs"] for sample in samples], color=OTHERS, label="99 in 100")
    axes[1].legend(frameon=False, fontsize=9)
    heading(axes[1], "from write to call, milliseconds")
    for one in axes:
        one.set_ylim(bottom=0)
        one.grid(axis="y", color=PALE)
        one.set_xlabel("minutes", fontsize=9, color=INK)
    return figure


CHARTS: dict[str, Callable[[Any], Figure]] = {
    "throughput": throughput,
    "cost": cost,
    "growth": growth,
    "lanes": lanes,
    "idle": idle,
    "latency": latency,
    "queries": queries,
    "emulator": emulator,
    "overload": overload,
    "soak": soak,
}
"""Each from the measurement of its name."""


def stale(results: Results, directory: Path = FIGURES) -> list[str]:
    """The charts that are missing, or were drawn from other results."""
    return [
        name for name in CHARTS if name in results and drawn_from(directory / f"{name}.png") != digest(results[name])
    ]


def draw(name: str, result: Any, directory: Path = FIGURES) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    figure = CHARTS[name](result)
    figure.savefig(directory / f"{name}.png", dpi=130, metadata={DIGEST: digest(result), "Software": None})
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description="Draws the charts of docs/figures.md.")
    parser.add_argument("--all", action="store_true", help="also those that are up to date")
    parser.add_argument("--output", type=Path, default=FIGURES, metavar="DIRECTORY", help="where the pictures go")
    options = parser.parse_args()
    results = load()
    if absent := [name for name in CHARTS if name not in results]:
        say(f"not measured, and not drawn: {', '.join(absent)}")
    wanted = [name for name in CHARTS if name in results] if options.all else stale(results, options.output)
    for name in wanted:
        draw(name, results[name], options.output)
        say(f"drawn: {options.output.name}/{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
