"""Broken rules and broken requests: our emulator refuses them with a reason, and neither hangs nor breaks.

OUTBOX_RULES_MUTATIONS is the number of files to try, with a tenth as many requests. OUTBOX_RULES_MUTATIONS_COMPARED is
the number of files that both emulators compile and decide. OUTBOX_RULES_SEED is the seed (1 by default).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from random import Random
from urllib.parse import quote

import pytest

from tests.rules.differential import Side, Tally, Verdict, compare_file
from tests.rules.guarded import RULES
from tests.rules.mutations import Asked, InProcess, RequestMaker, mutated, small

MUTATIONS = int(os.environ.get("OUTBOX_RULES_MUTATIONS", "1500"))
COMPARED = int(os.environ.get("OUTBOX_RULES_MUTATIONS_COMPARED", "100"))
SEED = int(os.environ.get("OUTBOX_RULES_SEED", "1"))


@dataclass
class Fuzzed:
    asked: Asked = field(default_factory=Asked)
    compiling: list[str] = field(default_factory=list)
    """The small files that compile."""
    without_error: list[str] = field(default_factory=list)
    """Files that were refused without an error, or with one outside of the file."""


@pytest.fixture(scope="module")
def fuzzed() -> Fuzzed:
    """Load each mutated file; those that compile decide some requests."""
    random = Random(SEED)
    whole = RULES.read_text(encoding="utf-8")
    fuzzed = Fuzzed()
    with InProcess() as place:
        for number in range(MUTATIONS):
            is_whole = number % 20 == 0
            source = mutated(random, whole if is_whole else small(random))
            issues = place.load(source)
            if issues is None:
                place.ask(random, fuzzed.asked)
                fuzzed.compiling += [] if is_whole else [source]
            elif not any(one.is_error for one in issues) or any(one.line > source.count("\n") + 1 for one in issues):
                fuzzed.without_error.append(source)
    return fuzzed


@pytest.mark.timeout(300 + MUTATIONS // 10)
def test_a_mutated_file_is_refused_with_a_line_or_decides(fuzzed: Fuzzed, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nmutated rules, seed {SEED}: {MUTATIONS} files; {fuzzed.asked}")
    assert not fuzzed.without_error, "\n\n".join(fuzzed.without_error[:3])
    assert 0 < fuzzed.asked.files < MUTATIONS
    assert fuzzed.asked.allowed
    assert fuzzed.asked.refused


@pytest.mark.timeout(300 + MUTATIONS // 20)
async def test_a_mutated_request_is_answered(ours: Side, capsys: pytest.CaptureFixture[str]) -> None:
    random = Random(SEED)
    made = RequestMaker(random)
    await ours.load(made.project, small(random))
    verdicts = dict.fromkeys(Verdict, 0)
    for number in range(MUTATIONS // 10):
        if number % 100 == 0:
            await ours.load(made.project, made.rules())
        method, path, body, headers = made.request()
        verdict = await ours.verdict(method, quote(path, safe="/:?&=().*%"), body, headers)
        assert verdict is not Verdict.BROKEN, f"{method} {path} {body!r} {headers}"
        verdicts[verdict] += 1
    with capsys.disabled():
        print(
            f"\nmutated requests, seed {SEED}: {', '.join(f'{count} {one.value}' for one, count in verdicts.items())}"
        )
    assert verdicts[Verdict.ALLOWED]
    assert verdicts[Verdict.DENIED]
    assert verdicts[Verdict.INVALID]


@pytest.mark.timeout(600 + MUTATIONS // 10 + COMPARED)
async def test_what_a_mutated_file_allows_google_allows_too(
    fuzzed: Fuzzed, ours: Side, theirs: Side, capsys: pytest.CaptureFixture[str]
) -> None:
    random = Random(SEED)
    tally = Tally()
    compared = 0
    for source in fuzzed.compiling:
        if compared == COMPARED:
            break
        compared += await compare_file(random, source, ours, theirs, tally)
    with capsys.disabled():
        print(f"\nmutated rules, seed {SEED}: {compared} files on both emulators; {tally}")
    assert compared == COMPARED, "too few files compile on both emulators: raise OUTBOX_RULES_MUTATIONS"
    assert tally.decisions
    assert not tally.only_ours_allows, "\n".join(map(str, tally.only_ours_allows[:10]))
    assert not tally.otherwise, "\n".join(map(str, tally.otherwise[:10]))
