"""Variables of a target: `{name}` in a text, a caption or a template's parameter becomes the target's own value.

A reminder whose targets have no variables is sent as it is written, braces and all. If one target has variables, every
placeholder must have a value for every target; that is checked before the reminder is stored, and before it fires.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]{0,49})\}")
MOST = 20
"""Variables of one target."""
LONGEST = 1_024
"""Characters of a value."""


def placeholders(parts: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The names in the parts, each once, in the order in which they come."""
    found = [name for part in parts for text in _texts(part) for name in PLACEHOLDER.findall(text)]
    return tuple(dict.fromkeys(found))


def missing(names: Sequence[str], variables: Mapping[str, str]) -> str | None:
    """The first name that has no value; None if all have one."""
    return next((name for name in names if not variables.get(name)), None)


def filled(parts: Sequence[Mapping[str, Any]], variables: Mapping[str, str]) -> list[dict[str, Any]]:
    """The parts with the target's values. A placeholder without a value stays as it is."""

    def value(text: str) -> str:
        return PLACEHOLDER.sub(lambda found: variables.get(found[1], found[0]), text)

    return [{name: _mapped(one, value) if name in _FILLED else one for name, one in part.items()} for part in parts]


_FILLED = frozenset({"text", "caption", "params"})


def _mapped(value: Any, change: Any) -> Any:
    match value:
        case str():
            return change(value)
        case list() | tuple():
            return [_mapped(one, change) for one in value]
        case dict():
            return {name: _mapped(one, change) for name, one in value.items()}
        case _:
            return value


def _texts(part: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for name in _FILLED:
        _mapped(part.get(name), found.append)
    return found
