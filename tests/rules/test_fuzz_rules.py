"""Broken rules and broken requests: our emulator refuses them with a reason, and neither hangs nor breaks.

OUTBOX_RULES_MUTATIONS is the number of files to try, with a tenth as many requests. OUTBOX_RULES_MUTATIONS_COMPARED is
the number of files that both emulators compile and decide. OUTBOX_RULES_SEED is the seed (1 by default).
"""

from __future__ import annotations

import os
from random import Random
from urllib.parse import quote

import pytest

from tests.rules.differential import Side, Tally, Verdict, compare_file
from tests.rules.guarded import RULES
from tests.rules.mutations import Asked, InProcess, RequestMaker, mutated, small

MUTATIONS = int(os.environ.get("OUTBOX_RULES_MUTATIONS", "1500"))
COMPARED = int(os.environ.get("OUTBOX_RULES_MUTATIONS_COMPARED", "100"))
SEED = int(os.environ.get("OUTBOX_RULES_SEED", "1"))


@pytest.mark.timeout(180 + MUTATIONS // 20)
def test_a_mutated_file_is_refused_with_a_line_or_decides(capsys: pytest.CaptureFixture[str]) -> None:
    random = Random(SEED)
    whole = RULES.read_text(encoding="utf-8")
    asked = Asked()
    with InProcess() as place:
        for number in range(MUTATIONS):
            source = mutated(random, whole if number % 20 == 0 else small(random))
            issues = place.load(source)
            if issues is None:
                place.ask(random, asked)
                continue
            assert any(issue.is_error for issue in issues)
            assert all(0 <= issue.line <= source.count("\n") + 1 for issue in issues)
    with capsys.disabled():
        print(f"\nmutated rules, seed {SEED}: {MUTATIONS} files; {asked}")
    assert 0 < asked.files < MUTATIONS
    assert asked.allowed
    assert asked.refused


@pytest.mark.timeout(180 + MUTATIONS // 20)
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


@pytest.mark.timeout(300 + COMPARED)
async def test_what_a_mutated_file_allows_google_allows_too(
    ours: Side, theirs: Side, capsys: pytest.CaptureFixture[str]
) -> None:
    random = Random(SEED)
    tally = Tally()
    compared = 0
    with InProcess() as place:
        while compared < COMPARED:
            source = mutated(random, small(random))
            if place.load(source) is not None:
                continue
            compared += await compare_file(random, source, ours, theirs, tally)
    with capsys.disabled():
        print(f"\nmutated rules, seed {SEED}: {compared} files on both emulators; {tally}")
    assert tally.decisions
    assert not tally.only_ours_allows, "\n".join(map(str, tally.only_ours_allows[:10]))
    assert not tally.otherwise, "\n".join(map(str, tally.otherwise[:10]))
