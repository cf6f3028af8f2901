"""Does every condition in the rules stop something by itself?  `python -m tests.rules.mutants [--official]`

Each condition in turn is replaced by `true`, and the cases for which it was not true are tried again. If the rules
still refuse all of them, no case shows what the condition is for, and the command prints it and fails. The few
conditions below are there twice on purpose. The command takes minutes, so it is not part of the suite. It runs on our
emulator, or on Google's with --official.
"""

from __future__ import annotations

import asyncio
import sys

from tests.conformance.backends import googles_emulator, our_server
from tests.rules.actions import Case
from tests.rules.coverage import Expression, expressions
from tests.rules.guarded import RULES, GuardedProject, RulesEmulator
from tests.rules.test_rules import CASES

ALSO_STOPPED_ELSEWHERE = {
    "value.matches('[^/]{1,128}')": "no member document has such a path",
    "isAccountId(entry.accountId)": "the thread's name would be another account's",
    "maySend(request.resource.data.accountId)": "the thread asks the same",
    "isOfThisCommit(message.createdAt)": "the outbox document asks the same of its message",
    "isOfThisCommit(entry.createdAt)": "message and outbox document both ask",
}


async def main() -> bool:
    source = RULES.read_text(encoding="utf-8")
    async with googles_emulator() if "--official" in sys.argv else our_server() as place:
        emulator = RulesEmulator(place)
        stopped = await _what_stopped_what(emulator, source)
        survivors = [one for one in stopped if not await _is_missed(emulator, source, one, stopped[one])]
    needless = [one for one in survivors if one.text not in ALSO_STOPPED_ELSEWHERE]
    print(f"{len(stopped)} conditions replaced by true, {len(survivors) - len(needless)} of them are there twice")
    for one in needless:
        print(f"no case shows what it is for: {one}")
    return not needless


async def _what_stopped_what(emulator: RulesEmulator, source: str) -> dict[Expression, list[Case]]:
    """For each condition the refused cases for which it was false or an error, by where it stands."""
    seen: dict[tuple[int, int], tuple[Expression, list[Case]]] = {}
    conditions = set()
    for case in (case for case in CASES if not case.allowed):
        project = GuardedProject(emulator)
        await project.load(source)
        assert not await project.is_allowed(case), case.name
        for one in expressions(await project.coverage(), source):
            place = (one.start, one.end)
            _, cases = seen.setdefault(place, (one, []))
            if one.is_condition:
                conditions.add(place)
            if one.was_false or one.was_error:
                cases.append(case)
    return {one: cases for place, (one, cases) in seen.items() if place in conditions and _can_be_true(source, one)}


def _can_be_true(source: str, one: Expression) -> bool:
    """What is negated is tried with its negation; a body with `let` is no expression that could be replaced."""
    is_negated = source[one.start - 1] == "!" or (source[: one.start].endswith("!(") and source[one.end] == ")")
    return not is_negated and not one.text.startswith("let ")


async def _is_missed(emulator: RulesEmulator, source: str, one: Expression, cases: list[Case]) -> bool:
    project = GuardedProject(emulator)
    await project.load(f"{source[: one.start]} true {source[one.end :]}")
    for case in cases:
        if await project.is_allowed(case):
            return True
    return False


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
