"""One seed, many seeds, and the report. A seed is a whole run: the same seed gives the same run, to the microsecond."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from multiprocessing import active_children, get_context, parent_process

from firestore_emulator.virtual_time import SimulationError, run
from firestore_outbox.local.simulation.checks import breaches
from firestore_outbox.local.simulation.play import Play
from firestore_outbox.local.simulation.scenario import Scenario, draw
from firestore_outbox.local.simulation.truth import Truth

TIME_LIMIT = timedelta(hours=6)
SEEDS_A_TASK = 10


@dataclass(frozen=True, slots=True)
class Result:
    seed: int
    breaches: tuple[str, ...]
    """Empty: every invariant holds."""
    trace: tuple[str, ...] = ()
    """What happened, if one does not."""
    messages: int = 0
    runs: int = 0
    attempts: int = 0
    crashes: int = 0
    virtual_seconds: float = 0.0


@dataclass(slots=True)
class Report:
    seeds: int = 0
    messages: int = 0
    runs: int = 0
    attempts: int = 0
    crashes: int = 0
    virtual_seconds: float = 0.0
    real_seconds: float = 0.0
    failures: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        self.seeds += 1
        self.messages += result.messages
        self.runs += result.runs
        self.attempts += result.attempts
        self.crashes += result.crashes
        self.virtual_seconds += result.virtual_seconds
        if result.breaches:
            self.failures.append(result)


def run_seed(seed: int) -> Result:
    return run_scenario(draw(seed))


def run_scenario(scenario: Scenario) -> Result:
    seed = scenario.seed
    seen: list[Result] = []
    try:
        run(_main(scenario, seen), seed=seed, start=scenario.start, time_limit=TIME_LIMIT)
    except SimulationError as error:
        if not seen:
            seen.append(Result(seed, (f"{type(error).__name__}: {error}",)))
    return seen[0]


async def _main(scenario: Scenario, seen: list[Result]) -> None:
    play = Play(scenario)
    world = play.world
    try:
        await play.run()
        found = await breaches(scenario, play)
        seen.append(
            Result(
                scenario.seed,
                tuple(found),
                tuple(trace(scenario, world.truth)) if found else (),
                messages=len(world.truth.collection("outbox")),
                runs=len(world.truth.collection("runs")),
                attempts=len(world.truth.attempts),
                crashes=len(world.truth.dead),
                virtual_seconds=world.loop.time(),
            )
        )
    finally:
        await world.stop()


def trace(scenario: Scenario, truth: Truth) -> Iterator[str]:
    """Line by line what happened, shortest form."""
    settings = scenario.settings.model_dump(exclude_defaults=True)
    yield f"troubles: {', '.join(sorted(scenario.troubles))}; {scenario.workers} workers; settings {settings}"
    yield f"room for holds: {scenario.hold_room_bytes} bytes"
    for spec in (*scenario.accounts, *scenario.reminders):
        yield f"{spec}"
    lines: list[tuple[datetime, str]] = [(at, f"-- {words}") for at, words in truth.notes]
    before: dict[str, dict[str, object]] = {}
    for change in truth.changes:
        new = change.data or {}
        old = before.get(change.path, {})
        before[change.path] = new
        if not change.path.startswith("threads/") or "/messages/" in change.path:
            changed = {name: new.get(name) for name in sorted({*old, *new}) if old.get(name) != new.get(name)}
            lines.append((change.at, f"{change.path} {_short(changed, scenario.start)}"))
    lines += [
        (a.at, f"-> {a.process} sends {a.request_id} (claim {a.number} by {a.claimed_by})") for a in truth.attempts
    ]
    lines += [
        (call.at, f"   provider {'accepts' if call.accepted else 'refuses'} {call.request_id} part {call.part}")
        for call in truth.calls
    ]
    for at, line in sorted(lines, key=lambda entry: entry[0]):
        yield f"{(at - scenario.start).total_seconds():9.3f} {line}"


def _short(fields: dict[str, object], start: datetime) -> str:
    shown = []
    for name, value in sorted(fields.items()):
        text = str(value)
        if name in (
            "parts",
            "accountId",
            "threadId",
            "to",
            "direction",
            "requestId",
            "createdBy",
            "createdAt",
            "expireAt",
        ):
            continue
        if isinstance(value, datetime):
            text = f"{(value - start).total_seconds():.3f}"
        elif isinstance(value, dict):
            text = "{" + _short(value, start) + "}"
        shown.append(f"{name}={text}")
    return " ".join(shown)


# --- many


def run_seeds(first: int, count: int, jobs: int = 1, on_progress: Callable[[Report], None] | None = None) -> Report:
    report = Report()
    began = time.perf_counter()
    for result in _results(first, count, jobs):
        report.add(result)
        report.real_seconds = time.perf_counter() - began
        if on_progress is not None:
            on_progress(report)
    report.failures.sort(key=lambda result: result.seed)
    return report


def _results(first: int, count: int, jobs: int) -> Iterator[Result]:
    if jobs <= 1:
        yield from map(run_seed, range(first, first + count))
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_end_with_the_asker) as pool:
        ranges = [
            range(start, min(start + SEEDS_A_TASK, first + count))
            for start in range(first, first + count, SEEDS_A_TASK)
        ]
        try:
            with _interrupts_blocked():
                submitted = [pool.submit(_run_range, one) for one in ranges]
            for done in as_completed(submitted):
                yield from done.result()
        except BaseException:  # Ctrl-C, or the caller wants no more
            for process in active_children():
                process.terminate()
            raise


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Processes that start inside never see Ctrl-C, which a terminal sends to all of them: the parent ends them. A
    Ctrl-C that comes meanwhile reaches the parent at the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_the_asker() -> None:
    """Without this, the processes of a pool outlive a parent that was killed, and wait for work for ever."""
    asker = parent_process()
    assert asker is not None, "this runs in a process of the pool"

    def watch() -> None:
        asker.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run_range(seeds: range) -> list[Result]:
    logging.disable(logging.CRITICAL)  # as in the process that asked
    return [run_seed(seed) for seed in seeds]
