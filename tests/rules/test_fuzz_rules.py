"""Rules that make no sense: broken files are refused with a line, and nothing hangs or raises anything else.

OUTBOX_RULES_MUTATIONS says how many files to try; of those that compile, OUTBOX_RULES_MUTATIONS_COMPARED are also asked
on Google's emulator.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from firestore_emulator.rules import Issue, RulesRejected, compile_rules
from tests.rules.differential import Side, Tally, compare_file
from tests.rules.guarded import RULES
from tests.rules.random_rules import Conditions

MUTATIONS = int(os.environ.get("OUTBOX_RULES_MUTATIONS", "1500"))
COMPARED = int(os.environ.get("OUTBOX_RULES_MUTATIONS_COMPARED", "100"))
SEED = int(os.environ.get("OUTBOX_RULES_SEED", "1"))
PIECES = (
    *("&&", "||", "!", "==", "!=", "<", ">=", "+", "-", "/", "%", "*", "in", "is", "?", ":", ";", ",", ".", "=", "$"),
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "/a",
        "/{x}",
        "/{x=**}",
        "/$(",
        "'",
        '"',
        "\\",
        "//",
        "/*",
        "*/",
        "\n",
        "é",
        "\x00",
    ),
    *("true", "null", "1", "1.5", "'a'", "b'\\xff'", "request", "resource", "get(", "let a = 1;", "function f() {"),
    *("return", "match", "allow", "if", "9223372036854775808", "(((((", ")))))", "!!!!!!", "matches('(a+)+$')"),
)


def mutated(random: Random, source: str) -> str:
    for _ in range(random.randint(1, 4)):
        at, end = sorted((random.randint(0, len(source)), random.randint(0, len(source))))
        end = min(end, at + random.choice((0, 1, 3, 10, 40)))
        piece = random.choice((random.choice(PIECES), source[at:end] * 2, "", source[at:end][::-1]))
        source = source[:at] + piece + source[end:]
    return source


def small(random: Random) -> str:
    """A file of a few lines: most of its mutations change what it means."""
    condition = Conditions(random).condition()
    return (
        "rules_version = '2';\nservice cloud.firestore {\n  match /databases/{database}/documents {\n"
        "    function helper(first, second) { let joined = first + second; return joined; }\n"
        f"    match /t0/{{id}} {{\n      allow read, write: if {condition};\n    }}\n  }}\n}}\n"
    )


def issues_of(source: str) -> list[Issue] | None:
    """None: the file compiles. Anything raised but a refusal fails the test."""
    try:
        compile_rules(source)
    except RulesRejected as error:
        return error.issues
    return None


@pytest.mark.timeout(120 + MUTATIONS // 50)
def test_a_mutated_file_compiles_or_is_refused_with_a_line() -> None:
    random = Random(SEED)
    whole = RULES.read_text(encoding="utf-8")
    compiled = 0
    for number in range(MUTATIONS):
        source = mutated(random, whole if number % 20 == 0 else small(random))
        issues = issues_of(source)
        compiled += issues is None
        for issue in issues or ():
            assert 0 <= issue.line <= source.count("\n") + 1
    assert 0 < compiled < MUTATIONS


@pytest.mark.timeout(300 + COMPARED)
async def test_what_a_mutated_file_allows_google_allows_too(ours: Side, theirs: Side) -> None:
    random = Random(SEED)
    tally = Tally()
    tried = 0
    while tried < COMPARED:
        source = mutated(random, small(random))
        if issues_of(source) is not None:
            continue
        tried += 1
        await compare_file(random, source, ours, theirs, tally)
    assert tally.decisions
    assert not tally.only_ours_allows, "\n".join(map(str, tally.only_ours_allows[:10]))
