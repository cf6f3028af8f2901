"""A line or two of each measurement, with its command: all of them for docs/figures.md, a few for the README."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from bench.shown import PATTERNS, SHOWN_PLACES, Results, dollars, number, ratios, table

Line = tuple[str, str, str]
"""What, figure, command."""


HIGHLIGHTS = ("cost", "idle", "latency", "throughput", "growth", "fanout", "emulator", "chaos")
"""What a reader who compares designs asks first, in the README's order: the first line of each measurement."""


def summary(results: Results) -> str:
    """Every line, for docs/figures.md."""
    return _table(line for name, of in _LINES.items() if name in results for line in of(results[name]))


def highlights(results: Results) -> str:
    """The first line of the measurements that matter most, for the README."""
    return _table(line for name in HIGHLIGHTS if name in results for line in islice(_LINES[name](results[name]), 1))


def _table(lines: Iterable[Line]) -> str:
    return table(("what", "figure", "command"), list(lines))


def _cost_lines(cost: Any) -> Iterator[Line]:
    ours = {row["what"]: row for row in cost["rows"] if row["who"] == "our worker"}
    others = [row for row in cost["rows"] if row["what"] == "in bulk"]
    bulk, alone, receipt, target = (ours[what] for what in ("in bulk", "alone", "a receipt", "a run's target"))

    def used(row: Any) -> str:
        return f"{row['reads']:.2f} reads, {row['writes']:.2f} writes"

    yield (
        "a message from `queued` to `sent`, in bulk",
        f"{used(bulk)}; {dollars(bulk['dollarsAMillion'])} a million ({_compared(others, 'dollarsAMillion')})",
        "`make bench`",
    )
    for what, row in (("a message that comes alone", alone), ("a run's target, from reminder to sent", target)):
        yield (what, f"{used(row)}; {dollars(row['dollarsAMillion'])} a million", "`make bench`")
    yield ("a receipt, of accepted, delivered and read", used(receipt), "`make bench`")


def _compared(rows: Sequence[Any], name: str) -> str:
    """The others' dollars, all of them: some are less."""
    return ", ".join(f"{PATTERNS[row['who']]}: {dollars(row[name])}" for row in rows if row["who"] != "our worker")


def _idle_lines(idle: Any) -> Iterator[Line]:
    of = {(row["who"], row["accounts"]): row for row in idle["rows"]}
    many = max(row["accounts"] for row in idle["rows"])
    ours, others = of["our worker", many], [row for row in idle["rows"] if row["accounts"] == many]
    yield (
        f"a day on which nothing is sent, {number(many)} accounts",
        f"{number(ours['reads'])} reads, {number(ours['invocations'])} calls: {dollars(ours['dollarsADay'])}"
        f" ({_compared(others, 'dollarsADay')})",
        "`make bench`",
    )


def _latency_lines(latency: Any) -> Iterator[Line]:
    bar = latency["bar"]
    for run in latency["runs"]:
        if (run["perSecond"], run["providerMs"]) == (bar["perSecond"], bar["providerMs"]):
            times = run["writeToCallMs"]
            yield (
                f"from a message's write to the provider's call at {run['perSecond']:g} messages/s",
                f"median {times['median']:.0f} ms, 99th percentile {times['p99']:.0f} ms",
                "`make bench`",
            )


def _rates(throughput: Any) -> dict[tuple[str, str], float]:
    return {(run["who"], run["where"]): run["perSecond"] for run in throughput["runs"]}


def _throughput_lines(throughput: Any) -> Iterator[Line]:
    of, rates = ratios(throughput), _rates(throughput)
    googles = "Google's emulator"
    for where, shown in SHOWN_PLACES.items():
        over = {who: of.get(f"ours over {who} on {shown}") for who in PATTERNS}
        found = [
            f"{ratio:.1f} times {PATTERNS[who]}" for who, ratio in over.items() if ratio and who != "commits alone"
        ]
        if not found:
            continue
        share = over["commits alone"]
        ceiling = f"; {share:.0%} of the rate at which the server takes our commits alone" if share else ""
        yield (
            f"messages a second on {shown}, provider of 5 ms",
            f"{number(rates['our worker', where])}, which is {', '.join(found)}{ceiling}",
            "`make bench`",
        )
    ratio = of.get("ours on the embedded stack over Google's emulator")
    if ratio and ("our worker", googles) in rates:
        yield ("the same worker on our emulator over Google's", f"{ratio:.1f} times", "`make bench`")


def _growth_lines(growth: Any) -> Iterator[Line]:
    first, last = growth["rows"][0], growth["rows"][-1]
    yield (
        f"a message out of {number(first['queued'])} queued, and out of {number(last['queued'])}",
        f"{first['reads']:.2f} and {last['reads']:.2f} reads, {first['writes']:.2f} and {last['writes']:.2f} writes;"
        f" the worker holds {first['workerMemoryMB']:.0f} and {last['workerMemoryMB']:.0f} MB",
        "`make bench-growth`",
    )


def _lanes_lines(lanes: Any) -> Iterator[Line]:
    last = lanes["rows"][-1]
    yield (
        f"{number(last['accounts'])} accounts with one message each",
        f"all sent after {last['seconds']:.0f} s, {last['reads']:.1f} reads and {last['writes']:.1f} writes each",
        "`make bench`",
    )


def _webhooks_lines(webhooks: Any) -> Iterator[Line]:
    ending = "every state right" if not webhooks["wrong"] else f"{webhooks['wrong']} states wrong"
    yield (
        webhooks["what"],
        f"99th percentile of the answer {webhooks['answerMs']['p99']:.0f} ms, {ending}",
        "`make flood`",
    )


def _fanout_lines(fanout: Any) -> Iterator[Line]:
    first, last = fanout["sizes"][0], fanout["sizes"][-1]
    yield (
        f"a run of {number(last['targets'])} targets made into outbox documents",
        f"{last['seconds']:.0f} s, {last['memoryMB']:.0f} MB in all, {last['writesATarget']:.3f} writes a target"
        f" ({first['writesATarget']:.3f} at {number(first['targets'])})",
        "`make bench-fanout`",
    )


def _queries_lines(queries: Any) -> Iterator[Line]:
    sizes = ", ".join(number(row["documents"]) for row in queries["ours"]["queries"])
    shown = [f"ours {_medians(queries['ours'])}"]
    if "queries" in queries["googlesEmulator"]:
        shown.append(f"Google's {_medians(queries['googlesEmulator'])}")
    yield (f"50 documents by the outbox index, at {sizes} documents", "; ".join(shown), "`make bench`")


def _medians(of: Any) -> str:
    return ", ".join(number(row["medianMs"], 1 if row["medianMs"] < 10 else 0) for row in of["queries"]) + " ms"


EMULATOR_HIGHLIGHTS = ("single writes", "batched writes", "claims", "contended claims", "start-up")


def _emulator_lines(emulator: Any) -> Iterator[Line]:
    times = {
        figure["what"]: figure["servers"]["ours, in memory"].get("timesBetterThanGoogles")
        for figure in emulator["figures"]
    }
    found = [f"{what} {times[what]:.1f}" for what in EMULATOR_HIGHLIGHTS if times.get(what)]
    if found:
        yield ("our Firestore emulator beside Google's, times better", ", ".join(found), "`make bench-emulator`")


def _rules_lines(rules: Any) -> Iterator[Line]:
    rates = [f"ours {number(rules['ours']['decisionsPerSecond'])}"]
    if "decisionsPerSecond" in rules["googlesEmulator"]:
        rates.append(f"Google's {number(rules['googlesEmulator']['decisionsPerSecond'])}")
    yield (
        "decisions of firestore.rules a second, on our emulator and on Google's",
        f"{', '.join(rates)}; {rules['evaluationMs']:.2f} ms of processor time for a message's batch",
        "`make bench-rules`",
    )


def _overload_lines(overload: Any) -> Iterator[Line]:
    drained = overload["drainedAfterSeconds"]
    ended = "never empty" if drained is None else f"empty {drained:.0f} s later"
    lost = "none lost" if not overload["faults"] else f"{len(overload['faults'])} faults"
    yield (
        f"{number(overload['offeredPerSecond'])} messages/s for {overload['seconds']:g} s at a stack that drains"
        f" {number(overload['drainsPerSecond'])}",
        f"{number(overload['acknowledged'])} acknowledged, {lost}; {ended}",
        "`make overload`",
    )


def _soak_lines(soak: Any) -> Iterator[Line]:
    ended = "nothing kept growing" if not soak["faults"] else f"{len(soak['faults'])} faults"
    statuses = ", ".join(f"{number(count)} {status}" for status, count in sorted(soak["finalStatus"].items()))
    yield (
        f"{soak['minutes']:g} minutes at {soak['perSecond']:g} messages/s, memory, handles and lag watched",
        f"{statuses}; {ended}",
        "`make soak`",
    )


def _chaos_lines(chaos: Any) -> Iterator[Line]:
    troubles = {
        "kills": sum(chaos["kills"].values()),
        "cuts": sum(chaos["cuts"].values()),
        "stops": chaos["pauses"],
        "clock jumps": sum(chaos["clockJumps"].values()),
    }
    shown = ", ".join(f"{number(count)} {name}" for name, count in troubles.items())
    yield (
        f"{chaos['minutes']:g} minutes of trouble on real processes: {shown}",
        f"{number(chaos['messages']['acknowledged'])} messages acknowledged: {chaos['lost']} lost,"
        f" {chaos['duplicates']} sent twice, {chaos['outOfOrder']} out of order",
        "`make chaos`",
    )


_LINES: dict[str, Callable[[Any], Iterator[Line]]] = {
    "cost": _cost_lines,
    "idle": _idle_lines,
    "latency": _latency_lines,
    "throughput": _throughput_lines,
    "growth": _growth_lines,
    "lanes": _lanes_lines,
    "fanout": _fanout_lines,
    "webhooks": _webhooks_lines,
    "queries": _queries_lines,
    "emulator": _emulator_lines,
    "rules": _rules_lines,
    "overload": _overload_lines,
    "soak": _soak_lines,
    "chaos": _chaos_lines,
}
