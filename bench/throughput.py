"""How many messages a second go from queued to sent: our worker beside how others do it, on several Firestores.

    python -m bench.throughput [--messages N] [--rounds N] [--small]

It fails when ours on Google's emulator is less than 8 times the polling pattern, or ours on the embedded stack is less
than twice ours on Google's emulator. The other ratios are for information.

Method. One account without a pace, 50 sends at a time, each message to another recipient; the provider is a stub that
accepts everything after 5 ms. Every run begins with the same backlog, in a project of its own, and is checked in the
end: each message was handed to the provider once, and is stored as sent. Our worker writes both of a message's
documents. Beside it, on another server of the same kind: polling (every 500 ms a query for at most 50 documents; for
one after the other a claim in a transaction, the send, an update of each of the two documents); a locked batch (one
query for all that is due, all marked in batches, 50 sends at a time, outcomes saved 50 by 50; one document a message,
no lease); a function a write (Firebase's extension for email: each write of a document calls a function, which moves it
on in a transaction; 50 calls at a time, one document a message, no start of a function and no event in the time).
Polling and functions take only the first few hundred of the backlog, because they are slow; pauses between polls count.
And the ceiling: the very commits of one of our own drains, made 8 at a time as fast as the server takes them, with no
query, no provider and no precondition. (Another server, because our emulator keeps an index for each kind of query that
it was ever asked, and each of our writes would pay for theirs.) All use the real client library on one connection, and
one process besides the server's. Runs alternate: each round has one of every kind, after a round that is thrown away.
Rates are medians; a ratio is the median of the rounds' own ratios, so that what else the machine does falls on both
sides of it. Reads, writes and calls are counted in the client's channel as Firestore bills them; processor time is that
of the client's process and of the server's.
"""

from __future__ import annotations

import asyncio
import secrets
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from bench import places
from bench.ceiling import Recorded, commit_all, for_project
from bench.counted import Count
from bench.drains import CONCURRENCY, ProviderCalls, drain_ours, load, request_id_of, sent, stored_as
from bench.patterns import locked_batch, polling
from bench.patterns.per_write import Functions
from bench.places import Place
from bench.report import arguments, heading, keep, say
from firestore_emulator.official import EmulatorMissing

MESSAGES, ROUNDS = 5_000, 3
PROVIDER_SECONDS = 0.005
LEAST_OVER_POLLING, LEAST_OVER_GOOGLES = 8.0, 2.0

OURS, POLLING, LOCKED_BATCH, FUNCTION_A_WRITE, CEILING = (
    "our worker",
    "polling",
    "locked batch",
    "function a write",
    "commits alone",
)
MOST = {POLLING: 300, FUNCTION_A_WRITE: 500}
"""How many of the backlog the slow ones are given time for."""
GOOGLES, MEMORY, DURABLE, IN_PROCESS = (
    "Google's emulator",
    "ours, in memory",
    "ours, a data directory",
    "ours, in process",
)
SIDE_BY_SIDE = (GOOGLES, MEMORY)
"""Where all of them run. Elsewhere it is our worker alone."""


@dataclass(frozen=True)
class Kind:
    """What is measured: who drains, and where."""

    who: str
    where: str


@dataclass(frozen=True)
class Run:
    messages: int
    seconds: float
    waited_seconds: float
    """Of these, how long a pattern slept between polls."""
    client_cpu_seconds: float
    server_cpu_seconds: float | None
    count: Count

    @property
    def rate(self) -> float:
        return self.messages / self.seconds


@dataclass(frozen=True)
class Recording:
    """What our worker committed in a drain, for the ceiling."""

    project: str
    requests: list[bytes]


@dataclass
class Measured:
    runs: dict[Kind, list[Run]] = field(default_factory=dict)

    def ratio(self, one: Kind, other: Kind) -> float | None:
        """By how much `one` is faster, round by round."""
        pairs = list(zip(self.runs.get(one, []), self.runs.get(other, []), strict=False))
        return statistics.median(a.rate / b.rate for a, b in pairs) if pairs else None


# --- one run


async def run_once(
    kind: Kind, place: Place, backlog: int, count: Count, recording: Recording | None
) -> tuple[Run, str]:
    """The run, and the project that it was in."""
    project = f"bench-{secrets.token_hex(4)}"
    messages = min(MOST.get(kind.who, backlog), backlog)
    # Functions never ask for what is queued: a backlog beyond their own would make no difference.
    await load(place.client(project, Count()), messages if kind.who == FUNCTION_A_WRITE else backlog)
    calls = ProviderCalls(PROVIDER_SECONDS)
    work = _prepared(kind.who, place, project, messages, calls, count, recording)
    server_before, client_before, before = place.cpu_seconds(), time.process_time(), time.perf_counter()
    waited = await work()
    seconds, client_cpu, server_after = (
        time.perf_counter() - before,
        time.process_time() - client_before,
        place.cpu_seconds(),
    )
    if kind.who != CEILING:
        calls.check(messages)
        found = await _stored_as_sent(kind.who, place, project)
        if found != messages:
            raise RuntimeError(f"{kind}: {found} of {messages} messages are sent")
    server_cpu = None if server_before is None or server_after is None else server_after - server_before
    return Run(messages, seconds, waited, client_cpu, server_cpu, count), project


def _prepared(
    who: str,
    place: Place,
    project: str,
    messages: int,
    calls: ProviderCalls,
    count: Count,
    recording: Recording | None,
) -> Callable[[], Any]:
    """Everything up to the clock's start. What it gives, when called, drains, and gives the seconds that it slept."""
    client = place.client(project, count)

    async def ours() -> float:
        await drain_ours(client, place.queries(count), calls.send)
        return 0.0

    async def functions() -> float:
        await Functions(client, calls.send).drain(request_id_of(number) for number in range(messages))
        return 0.0

    async def commits() -> float:
        await commit_all(place.channel, requests)
        return 0.0

    match who:
        case "polling":
            return lambda: polling.drain(client, calls.send, messages)
        case "locked batch":
            return lambda: locked_batch.drain(client, calls.send, messages)
        case "function a write":
            return functions
        case "commits alone":
            assert recording is not None, "our worker ran before"
            requests = for_project(recording.requests, recording.project, project)
            return commits
        case _:
            return ours


async def _stored_as_sent(who: str, place: Place, project: str) -> int:
    client = place.client(project, Count())
    if who == FUNCTION_A_WRITE:
        return await stored_as(client, "delivery.state", "SUCCESS")
    return await (stored_as(client, "status", "sent") if who == LOCKED_BATCH else sent(client))


# --- all runs


async def measure(backlog: int, rounds: int, *, everywhere: bool) -> tuple[Measured, str | None]:
    """All runs; and why Google's emulator was left out, if it was."""
    measured, missing = Measured(), None if everywhere else "not asked for"
    recordings: dict[str, Recording] = {}
    async with AsyncExitStack() as stack:
        found: dict[str, Place] = {}
        of_others: dict[str, Place] = {}
        try:
            if everywhere:
                found[GOOGLES] = await stack.enter_async_context(places.googles())
                of_others[GOOGLES] = await stack.enter_async_context(places.googles())
        except EmulatorMissing as error:
            missing = str(error)
            say(f"Google's emulator is not measured: {missing}")
        found[MEMORY] = await stack.enter_async_context(places.ours(durable=False))
        of_others[MEMORY] = await stack.enter_async_context(places.ours(durable=False))
        if everywhere:
            found[DURABLE] = await stack.enter_async_context(places.ours(durable=True))
        found[IN_PROCESS] = await stack.enter_async_context(places.in_process())
        kinds = [
            Kind(who, where)
            for where in found
            for who in (OURS, CEILING, POLLING, LOCKED_BATCH, FUNCTION_A_WRITE)
            if who == OURS or where in SIDE_BY_SIDE
        ]
        for round_number in range(rounds + 1):
            for kind in kinds:
                is_warm_up = round_number == 0
                count = Recorded() if is_warm_up else Count()
                place = (found if kind.who in (OURS, CEILING) else of_others)[kind.where]
                run, project = await run_once(kind, place, backlog, count, recordings.get(kind.where))
                if isinstance(count, Recorded) and kind.who == OURS:
                    recordings[kind.where] = Recording(project, count.requests)
                note = "warming up" if is_warm_up else f"round {round_number}"
                say(f"{note}: {kind.who} on {kind.where}: {run.rate:,.0f}/s")
                if not is_warm_up:
                    measured.runs.setdefault(kind, []).append(run)
    return measured, missing


# --- the bars


@dataclass(frozen=True)
class Bar:
    sentence: str
    ratio: float | None
    least: float | None = None
    """None: for information."""

    @property
    def is_met(self) -> bool:
        return self.ratio is None or self.least is None or self.ratio >= self.least

    def __str__(self) -> str:
        if self.ratio is None:
            return f"{self.sentence}: not measured"
        if self.least is None:
            return f"{self.sentence}: {self.ratio:.2f} times"
        verdict = "at least" if self.is_met else "LESS THAN"
        return f"{self.sentence}: {self.ratio:.1f} times, {verdict} the {self.least:g} asked for"


def bars(measured: Measured) -> list[Bar]:
    on_googles = Kind(OURS, GOOGLES)
    over_polling = measured.ratio(on_googles, Kind(POLLING, GOOGLES))
    over_googles = measured.ratio(Kind(OURS, MEMORY), on_googles)
    found = [
        Bar("ours over polling on Google's emulator", over_polling, LEAST_OVER_POLLING),
        Bar("ours on the embedded stack over Google's emulator", over_googles, LEAST_OVER_GOOGLES),
    ]
    named = {GOOGLES: "Google's emulator", MEMORY: "the embedded stack"}
    for where in SIDE_BY_SIDE:
        for other in (POLLING, LOCKED_BATCH, FUNCTION_A_WRITE, CEILING):
            if (other, where) != (POLLING, GOOGLES):
                ratio = measured.ratio(Kind(OURS, where), Kind(other, where))
                found.append(Bar(f"ours over {other} on {named[where]}", ratio))
    return found


# --- the report


def figures(kind: Kind, runs: list[Run]) -> dict[str, Any]:
    def a_message(of: Callable[[Run], float | None]) -> float | None:
        values = [value / run.messages for run in runs if (value := of(run)) is not None]
        return statistics.median(values) if values else None

    def millis(seconds: float | None) -> float | None:
        return None if seconds is None else round(seconds * 1000, 3)

    rates = [run.rate for run in runs]
    shown = {
        "who": kind.who,
        "where": kind.where,
        "providerMs": PROVIDER_SECONDS * 1000,
        "messages": runs[0].messages,
        "perSecond": round(statistics.median(rates), 1),
        "perSecondOfRounds": [round(rate, 1) for rate in rates],
        "shareWaitingForPolls": round(statistics.median(run.waited_seconds / run.seconds for run in runs), 3),
        "clientCpuMsAMessage": millis(a_message(lambda run: run.client_cpu_seconds)),
        "serverCpuMsAMessage": millis(a_message(lambda run: run.server_cpu_seconds)),
    }
    if kind.who == CEILING:
        return shown
    return {
        **shown,
        "callsAMessage": round(a_message(lambda run: run.count.rpcs) or 0, 3),
        "readsAMessage": round(a_message(lambda run: run.count.reads) or 0, 3),
        "writesAMessage": round(a_message(lambda run: run.count.writes) or 0, 3),
        "writesACommit": round(statistics.median(run.count.writes / run.count.commits for run in runs), 1),
    }


def table(rows: list[dict[str, Any]]) -> str:
    lines = [f"{'where':<24}{'who':<18}{'a second':>9}{'client CPU':>12}{'server CPU':>12}{'reads':>7}{'writes':>7}"]
    for row in rows:
        cpu = "".join(f"{_shown_ms(row[f'{side}CpuMsAMessage']):>12}" for side in ("client", "server"))
        cost = "".join(f"{row.get(f'{what}AMessage', ''):>7}" for what in ("reads", "writes"))
        lines.append(f"{row['where']:<24}{row['who']:<18}{row['perSecond']:>9,.0f}{cpu}{cost}")
    return "\n".join(lines)


def _shown_ms(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} ms"


def main() -> int:
    parser = arguments("Messages a second, beside how others do it, on each Firestore.")
    parser.add_argument("--messages", type=int, default=MESSAGES, metavar="N", help="how many are queued")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="measured rounds, after one to warm up")
    options = parser.parse_args()
    backlog, rounds = (60, 1) if options.small else (options.messages, options.rounds)
    measured, missing = asyncio.run(measure(backlog, rounds, everywhere=not options.small))
    what = f"from queued to sent: {backlog:,} messages of one account, no pace, {CONCURRENCY} sends at a time"
    found = bars(measured)
    result = {
        **heading(what, __doc__),
        "rounds": rounds,
        "bars": [
            {"what": bar.sentence, "ratio": None if bar.ratio is None else round(bar.ratio, 2), "least": bar.least}
            for bar in found
        ],
        "googlesEmulator": {"notMeasured": missing} if missing else "measured",
        "runs": [figures(kind, runs) for kind, runs in measured.runs.items()],
    }
    keep(result, "throughput", options)
    print(table(result["runs"]))
    for bar in found:
        print(bar)
    return 0 if options.small or all(bar.is_met for bar in found) else 1


if __name__ == "__main__":
    sys.exit(main())
