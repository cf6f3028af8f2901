"""An outcome as figures, for people and for programs."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tests.system.chaos.judge import Evidence
from tests.system.chaos.run import Outcome

METHOD = """
Firestore, Cloud Tasks, functions, three workers and a faulty provider, each a process with its data on disk, and a
proxy between any two that call each other. Clients write messages steadily over twelve accounts: a third on a provider
that is safe to call again, a third on one that is not and whose receipts name the message, a third on one that is not
and whose receipts do not. Meanwhile every 2 to 5 s a process is killed with SIGKILL and started again on its data;
connections are refused, stalled or lose their answers; workers are stopped with SIGSTOP for longer than a lease; their
clocks jump by half a lease. Then it is quiet, everything comes to rest, and what clients were told, what is stored and
what the provider recorded are compared message by message.
"""


def figures(outcome: Outcome) -> dict[str, Any]:
    evidence, done = outcome.evidence, outcome.done
    return {
        "seed": outcome.options.seed,
        "minutes": outcome.options.minutes,
        "kills": dict(sorted(done.kills.items())),
        "killsLeftOut": done.kills_left_out,
        "pauses": done.pauses,
        "cuts": dict(sorted(done.cuts.items())),
        "clockJumps": dict(sorted(done.jumps.items())),
        "messages": {
            "written": len(evidence.written),
            "acknowledged": sum(one.is_acknowledged for one in evidence.written),
            "acknowledgedAfterRetries": sum(one.is_acknowledged and one.tries > 1 for one in evidence.written),
            "clientsThatWentAway": sum(not one.is_acknowledged for one in evidence.written),
            "stored": len(evidence.outbox),
        },
        "finalStatus": by_status(evidence),
        "shownStatus": dict(sorted(Counter(str(one.get("status")) for one in evidence.shown.values()).items())),
        "providerCalls": len(evidence.calls),
        "settledAfterDoubt": sum(
            bool(data.get("doubted")) and evidence.status(request_id) == "sent"
            for request_id, data in evidence.outbox.items()
        ),
        "duplicates": sum(max(0, times - 1) for times in evidence.delivered.values()),
        "lost": sum(breach.startswith("lost:") for breach in outcome.breaches),
        "outOfOrder": sum(breach.startswith("order:") for breach in outcome.breaches),
        "recovery": {
            "restartSeconds": spread(done.restart_seconds),
            "atRestAfterSeconds": round(outcome.at_rest_seconds, 1),
            "acknowledgedToDeliveredSeconds": spread(latencies(evidence)),
        },
        "breaches": list(outcome.breaches),
    }


def report(outcome: Outcome) -> dict[str, Any]:
    machine = {
        "cores": os.cpu_count(),
        "loadAfter": [round(load, 1) for load in os.getloadavg()],
        "system": platform.system(),
        "python": platform.python_version(),
    }
    return {
        "method": " ".join(METHOD.split()),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine,
        **figures(outcome),
    }


def by_status(evidence: Evidence) -> dict[str, dict[str, int]]:
    """By provider: what a doubt comes to depends on what it promises."""
    counts: dict[str, Counter[str]] = {}
    for request_id in evidence.outbox:
        counts.setdefault(evidence.account(request_id).provider, Counter())[evidence.status(request_id)] += 1
    return {provider: dict(sorted(count.items())) for provider, count in sorted(counts.items())}


def latencies(evidence: Evidence) -> list[float]:
    acknowledged = {one.request_id: one.acknowledged_at for one in evidence.written}
    found: dict[str, float] = {}
    for call in evidence.calls:
        at = acknowledged.get(call["requestId"])
        if call["delivered"] and at is not None and call["requestId"] not in found:
            found[call["requestId"]] = max(0.0, datetime.fromisoformat(call["at"]).timestamp() - at)
    return list(found.values())


def spread(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    shares = {"median": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {
        name: round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 2)
        for name, share in shares.items()
        if ordered
    }


def table(found: dict[str, Any]) -> list[str]:
    """Two columns: what, and how much of it."""
    rows: list[tuple[str, str]] = []
    for name, value in found.items():
        if name in ("method", "machine", "breaches"):
            continue
        rows.append((name, _words(value)))
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}}  {text}" for name, text in rows]


def _words(value: object) -> str:
    if not isinstance(value, dict):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return ", ".join(
        f"{name} {f'({_words(inner)})' if isinstance(inner, dict) else _words(inner)}" for name, inner in value.items()
    )
