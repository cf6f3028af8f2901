"""`explain_options`. Google's emulator passes over them, so these tests hold ours to the protocol's definition and to
what Google's client reads."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio
from google.cloud.firestore_v1.query_profile import ExplainOptions, QueryExplainError
from google.protobuf.json_format import MessageToDict

from tests.conformance.backends import Backend
from tests.conformance.wire import REQUESTS, Proto, all_of, any_of, query, where

DOCUMENTS = {f"c/{number}": {"x": number, "y": number % 3, "tags": ["t"] * (number % 2)} for number in range(10)}


@pytest.fixture(params=["grpc", "inprocess"])
def place(request: pytest.FixtureRequest) -> Backend:
    return Backend(request.getfixturevalue(f"{request.param}_place"))


@pytest_asyncio.fixture(loop_scope="session")
async def ours(place: Backend) -> Backend:
    await place.seed(DOCUMENTS)
    return place


async def explained(backend: Backend, structured: Proto, *, analyze: bool) -> list[Proto]:
    request = REQUESTS["RunQuery"](parent=backend.root, structured_query=structured)
    request.explain_options.analyze = analyze
    answers: list[Proto] = await backend.call("RunQuery", request)
    return answers


async def counted(backend: Backend, structured: Proto, *, analyze: bool) -> Proto:
    request = REQUESTS["RunAggregationQuery"](parent=backend.root)
    request.structured_aggregation_query.structured_query.CopyFrom(structured)
    request.structured_aggregation_query.aggregations.add(alias="n").count.SetInParent()
    request.explain_options.analyze = analyze
    [answer] = await backend.call("RunAggregationQuery", request)
    return answer


def indexes(metrics: Proto) -> list[dict[str, Any]]:
    return [MessageToDict(one) for one in metrics.plan_summary.indexes_used]


@pytest.mark.parametrize(
    ("structured", "used"),
    [
        (query("c"), ["(__name__ ASC)"]),
        (query("c", where("x", "==", 1)), ["(x ASC, __name__ ASC)"]),
        (query("c", where("x", ">", 1)), ["(x ASC, __name__ ASC)"]),
        (query("c", where("y", "==", 1), order=["-x"]), ["(y ASC, x DESC, __name__ DESC)"]),
        (query("c", order=["x", "-y"]), ["(x ASC, y DESC, __name__ DESC)"]),
        (query("c", where("tags", "array-contains", "t")), ["(tags CONTAINS, __name__ ASC)"]),
        (query("c", where("x", "in", [1, 2])), ["(x ASC, __name__ ASC)"]),
        (
            query("c", any_of(where("x", "==", 1), where("y", "==", 1))),
            ["(x ASC, __name__ ASC)", "(y ASC, __name__ ASC)"],
        ),
    ],
)
async def test_the_plan_names_the_indexes_and_nothing_is_read(
    ours: Backend, structured: Proto, used: list[str]
) -> None:
    [answer] = await explained(ours, structured, analyze=False)
    assert not answer.HasField("document")
    assert not answer.explain_metrics.HasField("execution_stats")
    plan = [{"query_scope": "Collection", "properties": properties} for properties in used]
    assert indexes(answer.explain_metrics) == plan
    ran = await explained(ours, structured, analyze=True)
    assert indexes(ran[-1].explain_metrics) == plan


async def test_a_group_is_planned_over_the_group(ours: Backend) -> None:
    [answer] = await explained(ours, query("c", where("x", "==", 1), group=True), analyze=False)
    assert indexes(answer.explain_metrics) == [
        {"query_scope": "Collection group", "properties": "(x ASC, __name__ ASC)"}
    ]


@pytest.mark.parametrize(
    ("structured", "returned", "reads", "entries", "documents"),
    [
        (query("c"), 10, 10, 10, 10),
        (query("c", limit=3), 3, 3, 3, 3),
        (query("c", offset=2, limit=3), 3, 5, 5, 5),
        (query("c", offset=20), 0, 10, 10, 10),
        (query("none"), 0, 1, 0, 0),
        (query("c", all_of(where("x", ">", 4), where("y", "!=", 0))), 3, 3, 5, 5),
    ],
    ids=["all", "limit", "offset", "beyond the end", "nothing", "a filter beside the index"],
)
async def test_an_analysis_has_the_documents_and_then_what_they_cost(
    ours: Backend, structured: Proto, returned: int, reads: int, entries: int, documents: int
) -> None:
    plain = await ours.run(structured)
    answers = await explained(ours, structured, analyze=True)
    assert [answer.document for answer in answers] == [answer.document for answer in plain]
    assert [answer.HasField("explain_metrics") for answer in answers] == [False] * (len(answers) - 1) + [True]
    stats = answers[-1].explain_metrics.execution_stats
    assert (stats.results_returned, stats.read_operations) == (returned, reads)
    assert stats.execution_duration.ToNanoseconds() >= 0
    debug = MessageToDict(stats.debug_stats)
    assert debug["index_entries_scanned"] == str(entries)
    assert debug["documents_scanned"] == str(documents)
    assert debug["billing_details"]["min_query_cost"] == ("1" if not documents else "0")


async def test_an_aggregation_is_planned_or_analyzed_too(ours: Backend) -> None:
    asked = query("c", where("x", ">=", 4))
    planned = await counted(ours, asked, analyze=False)
    assert not planned.HasField("result")
    assert not planned.explain_metrics.HasField("execution_stats")
    assert indexes(planned.explain_metrics) == [{"query_scope": "Collection", "properties": "(x ASC, __name__ ASC)"}]
    ran = await counted(ours, asked, analyze=True)
    assert ran.result.aggregate_fields["n"].integer_value == 6
    stats = ran.explain_metrics.execution_stats
    assert (stats.results_returned, stats.read_operations) == (1, 1)
    debug = MessageToDict(stats.debug_stats)
    assert debug["index_entries_scanned"] == "6"
    assert debug["billing_details"]["index_entries_billable"] == "6"


async def test_googles_client_reads_the_metrics(ours: Backend) -> None:
    asked = ours.client().collection("c").order_by("x").limit(4)
    found = await asked.get(explain_options=ExplainOptions(analyze=True))
    assert [one.id for one in found] == ["0", "1", "2", "3"]
    metrics = found.get_explain_metrics()
    assert metrics.plan_summary.indexes_used == [{"query_scope": "Collection", "properties": "(x ASC, __name__ ASC)"}]
    assert metrics.execution_stats.results_returned == 4
    assert metrics.execution_stats.read_operations == 4
    assert metrics.execution_stats.execution_duration.total_seconds() >= 0
    assert metrics.execution_stats.debug_stats["documents_scanned"] == "4"

    planned = await asked.get(explain_options=ExplainOptions(analyze=False))
    assert list(planned) == []
    assert planned.get_explain_metrics().plan_summary.indexes_used == metrics.plan_summary.indexes_used
    with pytest.raises(QueryExplainError):
        _ = planned.get_explain_metrics().execution_stats

    total = await ours.client().collection("c").count("n").get(explain_options=ExplainOptions(analyze=True))
    assert total[0][0].value == 10
    assert total.get_explain_metrics().execution_stats.read_operations == 1


async def test_a_query_without_explain_has_no_metrics(ours: Backend) -> None:
    assert not any(answer.HasField("explain_metrics") for answer in await ours.run(query("c")))
