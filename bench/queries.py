"""How long the outbox's own query takes as the collection grows: our Firestore beside Google's emulator.

    python -m bench.queries [--sizes 1000 10000 100000] [--small]

The query is the one that the worker claims with: 50 documents of one account and one status whose time has come, the
earliest first. It must cost what it returns and not what the collection holds: the command fails when our median at
the largest size is more than 1.5 times that at the smallest.

Method. Both servers run as processes of their own, in memory, and one raw gRPC client asks both. Ours: one server for
each size, asked in turn, so that whatever else the machine does falls on all sizes alike. Google's: one server whose
collection grows, asked as often as fits into a few seconds. Answers are parsed into protobuf messages, and each must
hold 50 documents in the right order. Start-up is the time from starting the process to its first answer.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from google.cloud.firestore_v1 import types

from bench.report import arguments, heading, keep, say
from firestore_emulator.official import EmulatorMissing, OfficialEmulator

SIZES = (1_000, 10_000, 100_000)
LIMIT = 50
MOST_GROWTH = 1.5
ROUNDS = 300
WARM_UP = 20
GOOGLES_SECONDS, GOOGLES_LEAST, GOOGLES_MOST = 10.0, 7, 200
DATABASE = "projects/bench/databases/(default)"
NOW_SECONDS = 1_900_000_000

Proto = Any  # raw protobuf classes, made at run time
_CommitRequest: Proto = types.CommitRequest.pb()
_CommitResponse: Proto = types.CommitResponse.pb()
_RunQueryRequest: Proto = types.RunQueryRequest.pb()
_RunQueryResponse: Proto = types.RunQueryResponse.pb()


# --- the documents and the query


def document(number: int) -> Proto:
    """One outbox document. Ten accounts; four in five are queued, and their times are spread over two days."""
    message = types.Document.pb()(name=f"{DATABASE}/documents/outbox/{number * 2_654_435_761 % 2**32:08x}-{number:06}")
    fields = message.fields
    fields["accountId"].string_value = f"account-{number % 10}"
    fields["status"].string_value = "queued" if number // 10 % 5 else "sent"
    fields["nextAttemptAt"].timestamp_value.seconds = NOW_SECONDS - number * 7919 % 172_800
    fields["threadId"].string_value = f"thread-{number % 997}"
    fields["to"].string_value = f"+4917{number:08}"
    fields["attempts"].integer_value = 0
    parts = fields["parts"].array_value.values.add()
    parts.map_value.fields["text"].string_value = "Your parcel is on its way. " * 4
    return message


def outbox_query() -> Proto:
    request = _RunQueryRequest(parent=f"{DATABASE}/documents")
    query = request.structured_query
    query.from_.add().collection_id = "outbox"
    query.where.composite_filter.op = 1
    for path, operator in (("accountId", 5), ("status", 5), ("nextAttemptAt", 2)):
        one = query.where.composite_filter.filters.add().field_filter
        one.field.field_path, one.op = path, operator
    values = [one.field_filter.value for one in query.where.composite_filter.filters]
    values[0].string_value, values[1].string_value = "account-3", "queued"
    values[2].timestamp_value.seconds = NOW_SECONDS
    query.order_by.add(direction=1).field.field_path = "nextAttemptAt"
    query.limit.value = LIMIT
    return request


class Client:
    """The same raw stubs for both servers."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address, [("grpc.max_receive_message_length", -1)])
        service = "/google.firestore.v1.Firestore/"
        self._commit = self._channel.unary_unary(
            service + "Commit", _CommitRequest.SerializeToString, _CommitResponse.FromString
        )
        self._run = self._channel.unary_stream(
            service + "RunQuery", _RunQueryRequest.SerializeToString, _RunQueryResponse.FromString
        )
        self._query = outbox_query()
        self._metadata = (("authorization", "Bearer owner"),)

    def load(self, first: int, end: int) -> None:
        for start in range(first, end, 500):
            request = _CommitRequest(database=DATABASE)
            for number in range(start, min(start + 500, end)):
                request.writes.add().update.CopyFrom(document(number))
            self._commit(request, metadata=self._metadata, wait_for_ready=True)

    def seconds(self) -> float:
        """One query; its answer is checked after the clock has stopped."""
        before = time.perf_counter()
        answers = list(self._run(self._query, metadata=self._metadata))
        taken = time.perf_counter() - before
        times = [answer.document.fields["nextAttemptAt"].timestamp_value.seconds for answer in answers]
        if len(times) != LIMIT or times != sorted(times):
            raise RuntimeError(f"the query gave {len(times)} documents, or in the wrong order")
        return taken

    def close(self) -> None:
        self._channel.close()


# --- the servers


@dataclass
class Measured:
    name: str
    start_up_seconds: float = 0.0
    samples: dict[int, list[float]] = field(default_factory=dict)

    def figures(self) -> dict[str, Any]:
        return {
            "startUpSeconds": round(self.start_up_seconds, 3),
            "queries": [
                {
                    "documents": size,
                    "repetitions": len(taken),
                    "medianMs": round(statistics.median(taken) * 1000, 3),
                    "p95Ms": round(percentile(taken, 0.95) * 1000, 3),
                }
                for size, taken in self.samples.items()
            ],
        }


def percentile(samples: list[float], share: float) -> float:
    return sorted(samples)[min(len(samples) - 1, int(len(samples) * share))]


@contextmanager
def our_server(measured: Measured) -> Iterator[Client]:
    before = time.perf_counter()
    command = [
        str(Path(sys.executable).parent / "outbox"),
        "emulator",
        "--firestore-port=0",
        "--tasks-port=0",
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["FIRESTORE_EMULATOR_HOST"]
            taken = time.perf_counter() - before
            measured.start_up_seconds = min(measured.start_up_seconds or taken, taken)
            client = Client(address)
            yield client
            client.close()
        finally:
            process.terminate()


def measure_ours(sizes: tuple[int, ...], rounds: int) -> Measured:
    measured = Measured("ours", samples={size: [] for size in sizes})
    with ExitStack() as stack:
        clients = {size: stack.enter_context(our_server(measured)) for size in sizes}
        for size, client in clients.items():
            say(f"ours: loading {size:,} documents")
            client.load(0, size)
        for round_number in range(-WARM_UP, rounds):
            for size, client in clients.items():
                taken = client.seconds()
                if round_number >= 0:
                    measured.samples[size].append(taken)
    return measured


def measure_googles(sizes: tuple[int, ...]) -> Measured:
    measured = Measured("Google's emulator")
    # Never one that runs already: it may hold anything, and its start cannot be timed.
    environ = {name: text for name, text in os.environ.items() if name != "FIRESTORE_EMULATOR_HOST"}
    before = time.perf_counter()
    with OfficialEmulator.start(environ=environ) as emulator:
        measured.start_up_seconds = time.perf_counter() - before
        client = Client(emulator.host)
        loaded = 0
        for size in sizes:
            say(f"Google's: loading {size:,} documents")
            client.load(loaded, size)
            loaded = size
            measured.samples[size] = sample_for_a_while(client)
        client.close()
    return measured


def sample_for_a_while(client: Client) -> list[float]:
    for _ in range(WARM_UP):
        if client.seconds() > 0.2:
            break  # warming up is for the fast sizes
    samples: list[float] = []
    deadline = time.perf_counter() + GOOGLES_SECONDS
    while len(samples) < GOOGLES_LEAST or (time.perf_counter() < deadline and len(samples) < GOOGLES_MOST):
        samples.append(client.seconds())
    return samples


# --- the report


def table(all_measured: list[Measured]) -> str:
    lines = [f"{'':20}{'start-up':>10}" + "".join(f"{f'{size:,} documents':>28}" for size in all_measured[0].samples)]
    for one in all_measured:
        cells = [f"{row['medianMs']:,.2f} ms (p95 {row['p95Ms']:,.2f})" for row in one.figures()["queries"]]
        lines.append(f"{one.name:20}{one.start_up_seconds:>8.2f} s" + "".join(f"{cell:>28}" for cell in cells))
    return "\n".join(lines)


def growth(measured: Measured) -> float:
    medians = [statistics.median(taken) for _, taken in sorted(measured.samples.items())]
    return medians[-1] / medians[0]


def main() -> int:
    parser = arguments("The outbox query as the collection grows, beside Google's emulator.")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="N", help="documents")
    options = parser.parse_args()
    sizes, rounds = ((1_000, 2_000), 5) if options.small else (tuple(sorted(options.sizes)), ROUNDS)
    all_measured = [measure_ours(sizes, rounds)]
    missing = "not asked for" if options.small else None
    try:
        if not options.small:
            all_measured.append(measure_googles(sizes))
    except EmulatorMissing as error:
        missing = str(error)
        say(f"Google's emulator was not measured: {missing}")
    ratio = growth(all_measured[0])
    what = f"{LIMIT} documents by accountId ==, status ==, nextAttemptAt <=, order by nextAttemptAt, over gRPC"
    report = {
        **heading(what, __doc__),
        "growth": {"from": sizes[0], "to": sizes[-1], "ratio": round(ratio, 3), "mostAllowed": MOST_GROWTH},
        "ours": all_measured[0].figures(),
        "googlesEmulator": {"notMeasured": missing} if missing else all_measured[1].figures(),
    }
    keep(report, "queries", options)
    print(table(all_measured))
    verdict = "within" if ratio <= MOST_GROWTH else "MORE THAN"
    print(f"ours from {sizes[0]:,} to {sizes[-1]:,} documents: {ratio:.2f} times, {verdict} the {MOST_GROWTH} allowed")
    return 0 if options.small or ratio <= MOST_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
