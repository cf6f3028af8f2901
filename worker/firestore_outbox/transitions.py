"""Tables of transitions: what a state becomes after an event. An event that a table does not have is a bug.

Each table is data in the slice that owns it. docs/states.md draws them all; a test compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

State = TypeVar("State", bound=StrEnum)
Event = TypeVar("Event", bound=StrEnum)


class IllegalTransition(Exception):
    """A table has no such pair: an error in the program, never in the data."""


def after(table: Mapping[tuple[State, Event], State], state: State, event: Event) -> State:
    try:
        return table[state, event]
    except KeyError:
        raise IllegalTransition(f"no {event} from {state}") from None


def diagram(table: Mapping[tuple[State, Event], State], *, first: State) -> str:
    """The table as a Mermaid state diagram: one arrow for each pair of states, with the events that take it."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for (state, event), becomes in table.items():
        arrows.setdefault((state.value, becomes.value), []).append(event.value.replace("_", " "))
    lines = [f"    {before} --> {then}: {', '.join(events)}" for (before, then), events in arrows.items()]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {first.value}", *lines])
