"""What `python -m bench.readme` puts into a document's places: charts and tables, made from `bench/results`.

Each takes a measurement's result and gives Markdown; what was not measured gives nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.shown import PATTERNS, SHOWN_PLACES, Results, dollars, number, ratios, table
from bench.summary import highlights, summary


def throughput_table(throughput: Any) -> str:
    of, rows = ratios(throughput), []
    for run in throughput["runs"]:
        share = of.get(f"ours over commits alone on {SHOWN_PLACES.get(run['where'])}")
        rows.append(
            (
                run["where"],
                PATTERNS[run["who"]],
                number(run["perSecond"]),
                f"{share:.0%}" if share and run["who"] == "our worker" else "",
                *(f"{run[what]:.2f}" if what in run else "" for what in ("readsAMessage", "writesAMessage")),
                *(_millis(run[f"{side}CpuMsAMessage"]) for side in ("client", "server")),
            )
        )
    head = ("where", "who", "messages/s", "of the ceiling", "reads", "writes", "client CPU, ms", "server CPU, ms")
    return table(head, rows)


def _millis(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def cost_table(cost: Any) -> str:
    numbers = ("reads", "writes", "deletes", "tasks", "invocations", "firestoreCalls")
    rows = [
        (
            PATTERNS[row["who"]],
            row["what"],
            *(f"{row[name]:.2f}" for name in numbers),
            dollars(row["dollarsAMillion"]),
        )
        for row in cost["rows"]
    ]
    head = ("who", "what", "reads", "writes", "deletes", "tasks", "calls of ours", "Firestore calls", "a million")
    prices = cost["prices"]
    listed = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in prices["dollarsAMillion"].items())
    return f"{table(head, rows)}\n\nDollars a million in {prices['region']}, {prices['asOf']}: {listed}."


def short_table(short: Any) -> str:
    numbers = ("reads", "writes", "tasks", "invocations")
    rows = [
        (row["what"], path, *(f"{row[path][name]:.2f}" for name in numbers), dollars(row[path]["dollarsAMillion"]))
        for row in short["dollars"]
        for path in ("usual", "short")
    ]
    times = [("25 ms injected into each Firestore call", short["injected"])]
    times += [(f"the embedded stack, {row['perSecond']:g} messages/s", row) for row in short.get("embedded", ())]
    latencies = [
        (name, *(f"{one['millis'][path]:g}" for path in ("usual", "short")), f"{one['times']:.2f}")
        for name, one in times
    ]
    head = ("messages", "path", "reads", "writes", "tasks", "calls of ours", "a million")
    latency_head = ("from a message's write to the provider's call", "usual path, ms", "short path, ms", "times faster")
    return f"{table(head, rows)}\n\n{table(latency_head, latencies)}"


def idle_table(idle: Any) -> str:
    rows = [
        (
            PATTERNS[row["who"]],
            number(row["accounts"]),
            *(number(row[name]) for name in ("reads", "writes", "tasks", "invocations")),
            dollars(row["dollarsADay"]),
        )
        for row in idle["rows"]
    ]
    return table(("who", "accounts", "reads", "writes", "tasks", "calls of ours", "a day"), rows)


def growth_table(growth: Any) -> str:
    rows = [
        (
            number(row["queued"]),
            f"{row['reads']:.2f}",
            f"{row['writes']:.2f}",
            f"{row['pageMs']:.1f}",
            f"{row['claimMs']:.1f}",
            number(row["workerMemoryMB"]),
            "" if row["serverMemoryMB"] is None else number(row["serverMemoryMB"]),
            number(row["perSecond"]),
        )
        for row in growth["rows"]
    ]
    head = ("queued", "reads", "writes", "page, ms", "claim, ms", "worker, MB", "server, MB", "messages/s")
    return table(head, rows)


def lanes_table(lanes: Any) -> str:
    rows = [
        (
            number(row["accounts"]),
            f"{row['seconds']:.1f}",
            number(row["perSecond"]),
            *(f"{row[name]:.1f}" for name in ("reads", "writes", "tasks", "invocations")),
            dollars(row["dollarsAMillion"]),
        )
        for row in lanes["rows"]
    ]
    head = ("accounts", "seconds", "messages/s", "reads", "writes", "tasks", "calls of ours", "a million")
    return table(head, rows)


def latency_table(latency: Any) -> str:
    rows = [
        (
            f"{run['perSecond']:g}",
            f"{run['providerMs']:g}",
            *(f"{run['writeToCallMs'][name]:.0f}" for name in ("median", "p90", "p99", "max")),
        )
        for run in latency["runs"]
    ]
    return table(("messages/s", "provider, ms", "median, ms", "90th", "99th", "longest"), rows)


def queries_table(queries: Any) -> str:
    rows = []
    for name, key in (("ours", "ours"), ("Google's emulator", "googlesEmulator")):
        if "queries" in queries[key]:
            medians = [number(row["medianMs"], 1) for row in queries[key]["queries"]]
            rows.append((name, f"{queries[key]['startUpSeconds']:.1f}", *medians))
    sizes = [f"{number(row['documents'])}, ms" for row in queries["ours"]["queries"]]
    return table(("server", "start-up, s", *sizes), rows)


def emulator_table(emulator: Any) -> str:
    servers = list(emulator["figures"][0]["servers"])
    rows = []
    for figure in emulator["figures"]:
        cells = [_cell(figure["servers"][server]) for server in servers]
        rows.append((figure["what"], figure["unit"], *cells))
    return table(("what", "unit", *servers), rows)


def _cell(of: Any) -> str:
    if "median" not in of:
        return str(of.get("notFinished", "not measured"))
    ratio = of.get("timesBetterThanGoogles")
    return f"{of['median']:,}" + (f" ({ratio:.1f} times)" if ratio else "")


def rules_table(rules: Any) -> str:
    rows = [
        (
            name,
            number(rules[key]["decisionsPerSecond"]),
            f"{rules[key]['batchMs']:.1f}",
            f"{rules[key]['batchP99Ms']:.1f}",
        )
        for name, key in (("ours", "ours"), ("Google's emulator", "googlesEmulator"))
        if "decisionsPerSecond" in rules[key]
    ]
    ahead = f"Ours makes {rules['ratio']:.1f} times as many decisions a second. " if "ratio" in rules else ""
    about = f"{ahead}Judging one batch takes {rules['evaluationMs']:.2f} ms of processor time."
    return f"{table(('server', 'decisions/s', 'a batch, median, ms', '99th, ms'), rows)}\n\n{about}"


def footprint_table(footprint: Any) -> str:
    packages, firestore = footprint["packagesBeyondFirestore"], footprint["firestore"]
    starts = footprint["startUpCpuSeconds"]
    rows = [
        ("packages beyond those of google-cloud-firestore", f"{len(packages)} (at most {footprint['mostPackages']})"),
        ("MB installed by them and the emulator", number(footprint["megabytesBeyondFirestore"], 1)),
        ("MB of the emulator itself", number(footprint["megabytesOwn"], 1)),
        (
            "google-cloud-firestore with all that it needs",
            f"{firestore['packages']} packages, {firestore['megabytes']} MB",
        ),
        ("start-up, seconds of processor time", number(starts["ours"]["median"], 2)),
    ]
    if "googles" in starts:
        rows.append(("the same of Google's emulator", number(starts["googles"]["median"], 2)))
    names = ", ".join(one["name"] for one in packages)
    return f"{table(('what', ''), rows)}\n\nThe packages: {names}."


def sealing_table(sealing: Any) -> str:
    steps = [
        (
            number(one["characters"]),
            number(one["sealMicroseconds"] / 1e3, 2),
            number(one["openMicroseconds"] / 1e3, 2),
            number(one["bytesInClear"]),
            number(one["bytesSealed"]),
        )
        for one in sealing["steps"]
    ]
    head = ("characters", "sealing, ms", "opening, ms", "bytes in clear", "bytes sealed")
    whole = sealing["product"]
    product = [
        ("in clear", number(whole["cpuMillisecondsInClear"], 2), number(whole["readsInClear"] / whole["messages"], 2)),
        ("sealed", number(whole["cpuMillisecondsSealed"], 2), number(whole["readsSealed"] / whole["messages"], 2)),
        ("ratio", number(whole["ratio"], 2), ""),
    ]
    kms = [
        (one["load"], number(one["kmsCalls"]), number(one["kmsCallsAMessage"], 4), number(one["kmsCallsAMillion"]))
        for one in sealing["kms"]
    ]
    return "\n\n".join(
        (
            table(head, steps),
            table((f"{whole['messages']} at once, all of the product", "processor time, ms", "reads"), product),
            table(("load", "calls to Cloud KMS", "a message", "a million"), kms),
        )
    )


def overload_table(overload: Any) -> str:
    told = {
        "drains, messages/s": "drainsPerSecond",
        "offered, messages/s": "offeredPerSecond",
        "seconds": "seconds",
        "written": "written",
        "acknowledged": "acknowledged",
        "empty after, s": "drainedAfterSeconds",
    }
    return table(list(told), [[f"{overload.get(name) or 0:,}" for name in told.values()]])


def soak_table(soak: Any) -> str:
    def row(name: str, of: Any) -> list[str]:
        if of is None:
            return [name, "", "", "too few samples"]
        return [name, f"{of['middle']:g}", f"{of['last']:g}", "yes" if of["is_flat"] else "no"]

    rows = [row(name, of) for name, of in soak["flatness"].items()]
    return table(("measure", "in the middle third", "in the last", "flat"), rows)


def chaos_table(chaos: Any) -> str:
    kills = ", ".join(f"{name} {count}" for name, count in chaos["kills"].items())
    cuts = ", ".join(f"{name} {count}" for name, count in chaos["cuts"].items())
    waits = chaos["recovery"]["acknowledgedToDeliveredSeconds"]
    rows = [
        ("processes killed", kills),
        ("connections cut", cuts),
        ("messages acknowledged", number(chaos["messages"]["acknowledged"])),
        ("lost, sent twice, out of order", f"{chaos['lost']}, {chaos['duplicates']}, {chaos['outOfOrder']}"),
        ("from acknowledged to delivered, median and 99th, s", f"{waits['median']:.1f}, {waits['p99']:.1f}"),
        ("at rest after, s", f"{chaos['recovery']['atRestAfterSeconds']:.0f}"),
    ]
    return table(("what", "figure"), rows)


def fanout_table(fanout: Any) -> str:
    rows = [
        (
            number(size["targets"]),
            f"{size['seconds']:.1f}",
            f"{size['memoryMB']:.0f}",
            f"{size['readsATarget']:.3f}",
            f"{size['writesATarget']:.3f}",
        )
        for size in fanout["sizes"]
    ]
    return table(("targets", "seconds", "memory, MB", "reads a target", "writes a target"), rows)


def sessions_table(sessions: Any) -> str:
    (row,) = sessions["rows"]
    rows = [
        ("messages, all sent", number(row["sent"])),
        ("most sessions up at once", f"{row['mostUp']} of {row['slots']} slots"),
        (
            "delay beyond the schedule, seconds: median, 99th, most",
            ", ".join(f"{row[name]:g}" for name in ("delayMedianSeconds", "delay99thSeconds", "delayMostSeconds")),
        ),
        (
            "reads, writes and tasks a message",
            f"{row['readsAMessage']}, {row['writesAMessage']}, {row['tasksAMessage']}",
        ),
        ("a day, for all accounts", dollars(row["dollarsADay"])),
        ("writes a second of the busiest shard of the hot set, in its busiest minute", f"{row['setWritesASecond']:g}"),
        (
            "writes a second of the busiest document of all, in its busiest minute",
            f"{row['busiestWritesASecond']:g} (`{row['busiestDocument']}`)",
        ),
    ]
    return table((f"{number(row['accounts'])} accounts, {row['slots']} slots, {row['shards']} shards", "figure"), rows)


def scale_table(scale: Any) -> str:
    documents, ranges = scale["documentsASecond"], scale["rangesASecond"]
    document = max(documents, key=documents.__getitem__)
    index = max(ranges, key=ranges.__getitem__)
    each = scale["aMessage"]
    rows = [
        ("messages sent a second", number(scale["messagesASecond"])),
        ("writes a second of the busiest document", f"{documents[document]:.2f} (in `{document}`)"),
        ("writes a second of the busiest range whose values grow with time", f"{ranges[index]:.2f} (`{index}`)"),
        ("reads, writes and tasks a message", f"{each['reads']:.2f}, {each['writes']:.2f}, {each['tasks']:.3f}"),
        ("worker instances, most requests of tasks open at once", f"{scale['workers']}, {scale['mostRequestsAtOnce']}"),
    ]
    return table((f"{number(scale['accounts'])} busy accounts", "figure"), rows)


def before_table(before: Any) -> str:
    rows = [
        (row["what"], f"{row['before']:,.4g}", f"{row['now']:,.4g}", f"{row['timesBetter']:.2f}")
        for row in before["rows"]
    ]
    return table(("what", "before", "now", "times better"), rows)


def measured_on(result: Any) -> str:
    machine = result["machine"]
    load = machine.get("loadAtTheEnd") or machine.get("loadAfter") or machine.get("loadBefore")
    first = load[0] if isinstance(load, list) else load
    return f"Measured {result['date']}, {machine['cores']} cores, load {first}."


BLOCKS: dict[str, Callable[[Any], str]] = {
    "throughput": throughput_table,
    "cost": cost_table,
    "short": short_table,
    "idle": idle_table,
    "growth": growth_table,
    "lanes": lanes_table,
    "latency": latency_table,
    "queries": queries_table,
    "fanout": fanout_table,
    "rules": rules_table,
    "footprint": footprint_table,
    "sealing": sealing_table,
    "sessions": sessions_table,
    "scale": scale_table,
    "before": before_table,
}
"""Of docs/figures.md, docs/emulator.md and docs/rules-emulator.md, each from the measurement of its name."""

_COMMANDS = {"emulator": "bench-emulator", "rules": "bench-rules"}

CHARTED = {
    "throughput": "Messages a second",
    "cost": "Dollars for a million",
    "idle": "Reads on an idle day",
    "growth": "Cost, time and memory as the backlog grows",
    "lanes": "Many accounts with one message each",
    "latency": "From a message's write to the provider's call",
    "queries": "50 documents by the outbox's index",
    "emulator": "Our emulator beside Google's",
    "overload": "The age of the oldest due message",
    "soak": "What processes hold, over time",
}
"""What has a chart (bench/charts.py), and what it shows."""

SECTIONS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "emulator": ("Our emulator beside Google's", emulator_table),
    "rules": ("Security rules on our emulator and on Google's", rules_table),
    "overload": ("More than it can drain", overload_table),
    "soak": ("A long steady stream", soak_table),
    "chaos": ("Trouble", chaos_table),
}
"""Of the same page, there only if they were measured: their titles and tables."""


def block(name: str, results: Results) -> str:
    """Empty where it was not measured."""
    if name in ("summary", "highlights"):
        return {"summary": summary, "highlights": highlights}[name](results)
    if name == "sections":
        return "\n\n".join(_section(one, results[one]) for one in SECTIONS if one in results)
    return _shown(name, results[name], BLOCKS[name]) if name in results else ""


def _section(name: str, result: Any) -> str:
    title, table_of = SECTIONS[name]
    about = result.get("what") or result["method"].partition(". ")[0]
    return f"## {title}\n\n`make {_COMMANDS.get(name, name)}`: {about}.\n\n{_shown(name, result, table_of)}"


def _shown(name: str, result: Any, table_of: Callable[[Any], str]) -> str:
    chart = [f"![{CHARTED[name]}](figures/{name}.png)"] if name in CHARTED else []
    return "\n\n".join([*chart, table_of(result), measured_on(result)])
