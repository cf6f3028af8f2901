"""How much of Firestore's 1,000 expressions a message uses.  `python -m tests.rules.budget`

Expressions that are always true are put before a rule, until the emulator refuses a message that it had allowed. What
fits is compared with what fits before a rule that asks nothing.
"""

from __future__ import annotations

import asyncio
from typing import Any

from tests.conformance.backends import googles_emulator
from tests.rules.actions import Case, parts, send
from tests.rules.guarded import RULES, GuardedProject, RulesEmulator
from tests.rules.parts_of_messages import FULL_MEDIA, LARGEST_TEMPLATE, LARGEST_VALUES, SEALED
from tests.rules.people import AGENT
from tests.rules.scene import TEXT

FIRST_LINE = "  match /databases/{database}/documents {\n"
RULES_OF = {"thread": "isThread", "message": "isMessage", "outbox document": "isAddressed"}
MESSAGES: dict[str, list[Any]] = {
    "one text": [TEXT],
    "ten texts": [TEXT] * 10,
    "ten media with captions": [FULL_MEDIA] * 10,
    "ten of the largest templates": [LARGEST_TEMPLATE] * 10,
    "ten of the largest templates with a file in the header": [LARGEST_VALUES] * 10,
    "ten sealed parts": [SEALED] * 10,
}
ASKS_NOTHING = f"""rules_version = '2';
service cloud.firestore {{
{FIRST_LINE}    match /{{any=**}} {{ allow create: if free(); }}
  }}
}}"""
MOST = 50


async def main() -> None:
    source = RULES.read_text(encoding="utf-8")
    async with googles_emulator() as place:
        emulator = RulesEmulator(place)
        free = await room(emulator, ASKS_NOTHING, "free", [TEXT])
        for what, rule in RULES_OF.items():
            for message, values in MESSAGES.items():
                used = 1 - await room(emulator, source, rule, values) / free
                print(f"{what}, {message}: {used:.0%}")


async def room(emulator: RulesEmulator, source: str, rule: str, values: list[Any]) -> int:
    """How many tens of expressions fit before the rule."""
    fits, too_many = 0, MOST
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        project = GuardedProject(emulator)
        await project.load(padded(source, rule, middle))
        if await project.is_allowed(Case("a message", AGENT, send(parts(*values)), allowed=True)):
            fits = middle
        else:
            too_many = middle
    return fits


def padded(source: str, rule: str, tens: int) -> str:
    ten = f"function ten() {{ return {' && '.join(['true'] * 10)}; }}\n"
    all_of_them = f"function padding() {{ return {' && '.join(['ten()'] * tens)}; }}\n"
    free = "function free() { return true; }\n"
    begun = source.replace(FIRST_LINE, FIRST_LINE + ten + all_of_them + free, 1)
    return begun.replace(f"allow create: if {rule}(", f"allow create: if padding() && {rule}(", 1)


if __name__ == "__main__":
    asyncio.run(main())
