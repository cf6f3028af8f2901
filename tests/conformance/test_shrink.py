"""A failing case is cut down to what makes it fail."""

from __future__ import annotations

from tests.conformance.cases import case_of
from tests.conformance.features import reads_of, writes_of
from tests.conformance.operations import Aggregate, Case, Commit, Guard, Put, Query, Reads, Transaction, Verify
from tests.conformance.shrink import MOST_ATTEMPTS, shrunk, smaller_cases


def orders(case: Case) -> bool:
    """Whether some query of the case has an order, and some write of an earlier step a value for `x`."""
    for number, step in enumerate(case):
        if any(isinstance(read, Query) and read.order for read in reads_of(step)):
            return any(isinstance(one, Put) and "x" in one.data for early in case[:number] for one in writes_of(early))
    return False


async def test_a_case_of_many_steps_comes_down_to_the_two_that_matter() -> None:
    async def fails(case: Case) -> bool:
        return orders(case)

    long = next(case for case in map(case_of, range(1000)) if len(case) > 6 and orders(case))
    short = await shrunk(long, fails)
    assert orders(short)
    assert len(short) == 2
    assert [len(writes_of(step)) + len(reads_of(step)) for step in short] == [1, 1]
    [put] = writes_of(short[0])
    assert isinstance(put, Put)
    assert set(put.data) == {"x"}


async def test_a_case_that_no_smaller_one_explains_stays_as_it_is_after_bounded_work() -> None:
    case = case_of(3)
    asked = []

    async def fails(smaller: Case) -> bool:
        asked.append(smaller)
        return False

    assert await shrunk(case, fails) == case
    assert 0 < len(asked) <= MOST_ATTEMPTS


def test_every_smaller_case_is_a_case() -> None:
    whole: Case = (
        Commit((Put("c/a", {"x": [1, {"k": 2}]}, mask=("x",), guard=Guard.EXISTS), Verify("c/b", Guard.EXISTS)), True),
        Transaction((Query("c", limit=1),), ()),
        Reads((Aggregate(Query("c", order=("x",)), (("count", ""),)),)),
    )
    smaller = list(smaller_cases(whole))
    assert whole not in smaller
    assert {type(step) for case in smaller for step in case} == {Commit, Transaction, Reads}
    kept = [case[0].writes[0].data for case in smaller if case and isinstance(case[0], Commit) and case[0].writes
            and isinstance(case[0].writes[0], Put)]  # fmt: skip
    for data in ({}, {"x": [1]}, {"x": [{"k": 2}]}, {"x": [1, {}]}):
        assert data in kept
