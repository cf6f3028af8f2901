"""The closing lines and the verdict of a run."""

from __future__ import annotations

from collections import Counter

from tests.conformance.features import Subject
from tests.conformance.tally import REQUIRE_ALL, Tally
from tests.tiers import Tier


def verdict(tally: Tally, *, installed: bool, narrowed: bool = False, require_all: bool = False) -> str | None:
    environ = {REQUIRE_ALL: "1"} if require_all else {}
    return tally.verdict(narrowed=narrowed, official_is_installed=lambda: installed, environ=environ)


ALL_RAN = Tally(ran=Counter(grpc=3, inprocess=3, official=3), chose_official=True)
OURS_RAN = Tally(ran=Counter(grpc=3, inprocess=3), left_out=Counter({"no Java": 3}), chose_official=True)


def test_a_whole_run_passes_and_says_what_ran_where() -> None:
    assert verdict(ALL_RAN, installed=True, require_all=True) is None
    assert list(ALL_RAN.closing_lines()) == [
        "backends: grpc 3, inprocess 3, official 3",
        "this machine could not run: nothing",
    ]


def test_a_machine_without_googles_emulator_passes_and_says_what_it_left_out() -> None:
    assert verdict(OURS_RAN, installed=False) is None
    assert list(OURS_RAN.closing_lines()) == [
        "backends: grpc 3, inprocess 3, official 0",
        "this machine could not run: 3 tests: no Java",
    ]


def test_a_run_of_one_tier_says_which_and_how_to_run_the_other() -> None:
    assert list(Tally(left_out=Counter({"no Java": 3})).closing_lines(Tier.SLOW)) == [
        "tier slow (the other: make test); this machine could not run: 3 tests: no Java"
    ]
    assert list(Tally().closing_lines(Tier.FAST)) == [
        "tier fast (the other: make test-slow); this machine could not run: nothing"
    ]


def test_a_machine_with_googles_emulator_fails_when_nothing_ran_on_it() -> None:
    assert verdict(OURS_RAN, installed=True)
    assert verdict(Tally(ran=Counter(inprocess=1), chose_official=True), installed=True)


def test_a_run_that_chose_no_test_on_googles_emulator_needs_none() -> None:
    assert verdict(Tally(ran=Counter(inprocess=1)), installed=True) is None
    assert verdict(Tally(ran=Counter(inprocess=1), chose_official=True), installed=True, narrowed=True) is None


def test_leaving_anything_out_fails_where_all_is_required() -> None:
    assert verdict(OURS_RAN, installed=False, require_all=True)


def test_the_tallies_of_several_processes_add_up() -> None:
    one = Tally(ran=Counter(grpc=1), differential_cases=2, differential_answers=5, explained=Counter(mask=1))
    other = Tally(
        ran=Counter(grpc=1, official=3),
        left_out=Counter({"no Java": 1}),
        explained=Counter(mask=2),
        chose_official=True,
    )
    one.add(Tally.from_plain(other.plain()))
    assert one == Tally(
        ran=Counter(grpc=2, official=3),
        left_out=Counter({"no Java": 1}),
        chose_official=True,
        differential_cases=2,
        differential_answers=5,
        explained=Counter(mask=3),
    )


def test_a_differential_run_says_how_many_cases_were_about_what() -> None:
    tally = Tally(differential_cases=3, differential_answers=20, subjects=Counter({"verify": 1, "vectors": 2}))
    tally.add(Tally.from_plain(Tally(subjects=Counter({"verify": 2})).plain()))
    assert list(tally.closing_lines()) == [
        "differential: 3 cases, 20 answers compared",
        "  cases with verify: 3, vectors: 2",
    ]


def test_a_run_of_other_suites_says_nothing() -> None:
    assert verdict(Tally(), installed=True) is None
    assert list(Tally().closing_lines()) == []


def test_what_is_handed_to_another_process_has_plain_texts_for_names() -> None:
    plain = Tally(subjects=Counter({Subject.CLEARS: 1})).plain()
    assert [type(name) for name in plain["subjects"]] == [str]
