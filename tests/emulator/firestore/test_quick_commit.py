"""The quick way of a commit gives what the usual way gives, and never takes what that refuses."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from grpc import StatusCode
from hypothesis import given

from firestore_emulator.documents.index_keys import index_key
from firestore_emulator.documents.protos import CommitRequest, CommitResponse, Document, Proto, Value
from firestore_emulator.documents.quick_walk import walk_document
from firestore_emulator.documents.times import micros_of
from firestore_emulator.documents.values import check_fields
from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.rpc.errors import RpcError
from firestore_emulator.rpc.service import Call, Unary
from firestore_emulator.storage import quick_commit
from firestore_emulator.storage.quick_collections import value_key
from firestore_emulator.storage.quick_commit import QuickCommits
from firestore_emulator.storage.tables import Row
from tests.conformance.universe_values import BAD, COMPOUNDS, SCALARS, around_the_limit
from tests.conformance.wire import Geo, Plain, Ref, Stamp, Unset, Vector, delete, query, set_, value, where
from tests.emulator.firestore import chance
from tests.emulator.firestore.support import DATABASE, SteppingClock, examples, name, parsed, place

LONG = tuple(around_the_limit(Random(seed)) for seed in range(40))
NAMES = ("a", "b.c", "é", "", "__x__", "__type__", "x" * 128, "z" * 1501, "value")
ODD: tuple[Plain, ...] = (
    Unset(),
    Stamp(0, 1),
    Stamp(-1),
    Stamp(2**40),
    Stamp(1, 10**9),
    Geo(0.0, 0.0),
    [[1]],
    [{"k": [[1]]}],
    "x" * 1_000_001,
    Ref("nowhere"),
    2**63 - 1,
    -1,
)


def plain_value(rng: Random) -> Plain:
    item = rng.choice(rng.choice((SCALARS, SCALARS, COMPOUNDS, LONG, ODD, BAD)))
    # What the universe calls `Here` is a reference in the database of a backend; there is none here.
    return Ref(name(item.path)) if type(item).__name__ == "Here" else item


def random_fields(rng: Random, depth: int = 0) -> dict[str, Plain]:
    fields: dict[str, Plain] = {}
    for _ in range(rng.randrange(4)):
        field = rng.choice(NAMES) if rng.random() < 0.1 else f"f{rng.randrange(6)}"
        if depth < 22 and rng.random() < (0.25 if depth < 3 else 0.9):
            inner = random_fields(rng, depth + 1)
            fields[field] = inner if rng.random() < 0.7 else [inner]
        else:
            fields[field] = plain_value(rng)
    return fields


@given(chance.randomness)
@examples(600)
def test_what_the_walk_accepts_the_usual_check_accepts_and_leaves_as_it_is(rng: Random) -> None:
    document = Document(name=name("c/a"))
    for field, item in random_fields(rng).items():
        document.fields[field].CopyFrom(value(item))
    data: bytes = document.SerializeToString(deterministic=True)
    found = walk_document(data, frozenset({b"f0", b"f1"}))
    try:
        check_fields(document.fields)
    except RpcError:
        assert found is None
        return
    if found is not None:
        assert document.SerializeToString(deterministic=True) == data
        assert found == {
            field.encode(): document.fields[field].SerializeToString(deterministic=True)
            for field in ("f0", "f1")
            if field in document.fields
        }


@pytest.mark.parametrize(
    "kind", [1, "text", "é\x00", None, True, 1.5, b"x", Stamp(5, 1000), {"k": [1, {"l": "m"}]}, [], {}]
)
def test_the_walk_accepts_common_values(kind: Plain) -> None:
    document = Document(name=name("c/a"))
    document.fields["x"].CopyFrom(value(kind))
    data = document.SerializeToString(deterministic=True)
    found = walk_document(data, frozenset({b"x"}))
    assert found is not None
    assert Value.FromString(found[b"x"]) == document.fields["x"]


def test_unknown_fields_and_times_are_not_walked() -> None:
    document = Document(name=name("c/a"))
    document.fields["x"].integer_value = 1
    plain = document.SerializeToString(deterministic=True)
    assert walk_document(plain, frozenset()) == {}
    assert walk_document(plain + b"\x2a\x01x", frozenset()) is None
    document.update_time.seconds = 5
    assert walk_document(document.SerializeToString(deterministic=True), frozenset()) is None


TIMES = [
    Stamp(seconds, nanos) for seconds in (0, 5, -1, -62_135_596_800, 253_402_300_799) for nanos in (0, 999_999_000)
]


@pytest.mark.parametrize(
    "kind",
    [*(0, 1.5, True, None, b"x", "", "é", "\x00", "x" * 124, "x" * 125, "x" * 2000), *TIMES],
)
def test_keys_from_bytes_are_those_from_values(kind: Plain) -> None:
    assert value_key(value(kind).SerializeToString(deterministic=True)) == index_key(value(kind))


QUESTIONS = (
    query("c", where("x", "==", 1), order=["y"]),
    query("c", order=["-x", "y"]),
    query("c", where("m.k", ">", 0)),
    query("c", where("x", "array-contains", 1)),
    query("c", order=["x"], group=True),
)


def random_commit(rng: Random) -> list[Proto]:
    writes = []
    for _ in range(rng.randrange(1, 6)):
        path = (
            rng.choice(["c/1", "c/2", "d/1", "c/1/c/3", "c/__id7__", "c/é"])
            if rng.random() < 0.5
            else f"c/{rng.random()}"
        )
        data = {field: plain_value(rng) for field in ("x", "y") if rng.random() < 0.9}
        if rng.random() < 0.3:
            data["m"] = {"k": rng.choice([0, 1, 2])}
        if rng.random() < 0.15:
            writes.append(delete(name(path), exists=rng.choice([None, None, None, None, False, True])))
        else:
            writes.append(set_(name(path), data, exists=rng.choice([None, None, None, False, True])))
    return writes


class Told:
    """An emulator on a clock that stands, and all that it answers."""

    def __init__(
        self, indexes: int = len(QUESTIONS), *, questions: Sequence[Proto] = QUESTIONS, is_observed: bool = False
    ) -> None:
        """`indexes`: how many of the questions have theirs from the beginning."""
        self.questions = questions
        self.emulator = FirestoreEmulator(clock=SteppingClock())
        self.answers: list[Any] = []
        self.changes: list[Any] = []
        if is_observed:
            self.emulator.engine.after_commit.append(lambda changes, micros: self.changes.append((*changes, micros)))
        for question in questions[:indexes]:
            self.ask(question)

    def ask(self, question: Proto) -> None:
        self.emulator.engine.run(parsed(question))

    async def commit(self, writes: list[Proto]) -> None:
        method = self.emulator.service.methods["Commit"]
        assert isinstance(method, Unary)
        request = CommitRequest(database=DATABASE, writes=copy.deepcopy(writes))
        try:
            answer = await method.handler(request, Call(metadata={}))
        except RpcError as refusal:
            self.answers.append((refusal.code, refusal.message))
        else:
            self.answers.append(answer.SerializeToString(deterministic=True))

    def commit_times(self) -> list[int]:
        committed = [CommitResponse.FromString(answer) for answer in self.answers if isinstance(answer, bytes)]
        return [micros_of(answer.commit_time) for answer in committed]

    def state(self) -> Any:
        history = self.emulator.engine.history
        rows = self.emulator.engine.storage.database.rows
        found = [
            [document.SerializeToString(deterministic=True) for document in self.emulator.engine.run(parsed(question))]
            for question in self.questions
        ]
        return (
            self.answers,
            rows("SELECT key, collection, data FROM documents ORDER BY key"),
            rows("SELECT shape, e.key, d.key FROM entries e LEFT JOIN documents d ON d.id=e.document ORDER BY 1, 2"),
            found,
            self.emulator.engine.billing.bill("p"),
            [
                (location, at, history.state_at(location, at))
                for location in sorted(history.changed_since(DATABASE, 0))
                for at in self.commit_times()
            ],
            self.changes,
        )


@given(chance.randomness)
@examples(300)
def test_both_ways_store_and_answer_the_same(rng: Random) -> None:
    commits = [random_commit(rng) for _ in range(6)]
    commits.append(commits[rng.randrange(6)][:2])  # what is written again may be as it was
    is_observed = rng.random() < 0.5
    # The last three need elements of arrays, fields of maps and collections of one id: other entries.
    questions = QUESTIONS if rng.random() < 0.5 else QUESTIONS[:2]
    sure_after = rng.choice([0, 1, quick_commit.SURE_AFTER])

    async def told(*, is_quick: bool) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(quick_commit, "SURE_AFTER", sure_after)
            if not is_quick:
                patch.setattr(QuickCommits, "commit", lambda *_: None)
            one = Told(indexes=1, questions=questions, is_observed=is_observed)
            for number, writes in enumerate(commits):
                await one.commit(writes)
                one.ask(questions[number % len(questions)])  # some make an index between two commits
            state = one.state()
            await one.emulator.stop()
            return state

    assert asyncio.run(told(is_quick=True)) == asyncio.run(told(is_quick=False))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each commit took the quick way. Without it the tests above would compare the usual way with itself."""
    found: list[bool] = []
    commit = QuickCommits.commit

    def counted(*arguments: Any) -> Any:
        made = commit(*arguments)
        found.append(made is not None)
        return made

    monkeypatch.setattr(QuickCommits, "commit", counted)
    return found


async def test_whole_documents_that_are_put_and_deleted_take_the_quick_way(taken: list[bool]) -> None:
    told = Told()
    new = [set_(name(f"c/{number}"), {"x": number, "y": "z"}) for number in range(3)]
    await told.commit(new)
    await told.commit(new)
    await told.commit([set_(name("c/0"), {"x": 7}), set_(name("c/9"), {}), delete(name("c/1")), delete(name("c/8"))])
    await told.commit([set_(name("c/0"), {}, exists=True), delete(name("c/1"), exists=False)])
    await told.emulator.stop()
    assert taken == [True] * 4


async def test_after_commits_of_new_documents_alone_nothing_is_looked_up_until_one_was_there(
    taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told()
    storage = told.emulator.engine.storage
    looked_up: list[int] = []
    rows_of = storage.rows_of

    def counted(keys: Sequence[bytes]) -> dict[bytes, Row]:
        looked_up.append(len(keys))
        return rows_of(keys)

    monkeypatch.setattr(storage, "rows_of", counted)
    for number in range(quick_commit.SURE_AFTER + 2):
        await told.commit([set_(name(f"c/{number}"), {"x": number}), set_(name(f"c/{number}b"), {}, exists=False)])
    assert looked_up == [2] * quick_commit.SURE_AFTER
    await told.commit([set_(name("c/new"), {}), set_(name("c/0"), {"x": "again"}), set_(name("c/newer"), {})])
    assert looked_up[quick_commit.SURE_AFTER :] == [3]
    replaced = told.emulator.engine.get(place("c/0"))
    assert replaced is not None
    assert replaced.fields["x"].string_value == "again"
    await told.commit([set_(name("c/last"), {})])
    assert looked_up[quick_commit.SURE_AFTER :] == [3, 1]
    await told.emulator.stop()
    assert taken == [True] * (quick_commit.SURE_AFTER + 4)


async def test_other_commits_take_the_usual_way(taken: list[bool]) -> None:
    told = Told()
    await told.commit([set_(name("c/10"), {"v": Vector((1.0,))}), set_(name("c/11"), {})])
    await told.commit([set_(name("c/10"), {"x": 1})])
    await told.commit([set_(name("c/12"), {}), set_(name("c/12"), {"x": 1})])
    await told.commit([set_(name("c/11"), {}, exists=False)])
    await told.emulator.stop()
    assert taken == [False, True, False, False]
    assert told.answers[-1][0] == StatusCode.ALREADY_EXISTS


async def test_a_name_that_is_too_long_is_refused_in_a_collection_that_is_known() -> None:
    told = Told()
    parent = "/".join(f"c/{'i' * 1400}" for _ in range(4)) + "/c"
    await told.commit([set_(name(f"{parent}/a"), {})])
    too_long = set_(name(f"{parent}/{'é' * 370}"), {})
    await told.commit([too_long])
    await told.commit([set_(name(f"{parent}/b"), {}), too_long])
    await told.emulator.stop()
    assert isinstance(told.answers[0], bytes)
    assert [code for code, _ in told.answers[1:]] == [StatusCode.INVALID_ARGUMENT] * 2
