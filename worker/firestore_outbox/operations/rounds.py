"""Reading a long list in rounds: each time the beginning, and then on from where the last time ended.

A sweep has a minute. If it cannot read a list to its end, it keeps a cursor, and the next sweep goes on there; so the
end of the list is reached however long it is. A list that fits into one page needs no cursor, and costs no read of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
Place = TypeVar("Place", bound="tuple[Any, ...]")


@dataclass(frozen=True, slots=True)
class Page(Generic[T, Place]):
    found: list[T]
    last: Place | None
    """The place of the last one. None: nothing follows."""


class Cursor(Protocol[Place]):
    """Where the last round ended."""

    async def read(self) -> Place | None: ...

    async def write(self, place: Place | None) -> None: ...


async def rounds(
    read: Callable[[Place | None], Awaitable[Page[T, Place]]],
    cursor: Cursor[Place],
    *,
    place: Callable[[T], Place],
    is_late: Callable[[], bool],
) -> AsyncIterator[list[T]]:
    """Pages of the list: the first, those behind the cursor, then those between the two, until it is late."""
    page = await read(None)
    yield page.found
    if page.last is None:
        return
    stored = await cursor.read()
    begin = page.last
    start = begin if stored is None else max(begin, stored)
    at, has_wrapped = start, start == begin
    while not is_late():
        page = await read(at)
        found = page.found if start == begin or not has_wrapped else [one for one in page.found if place(one) <= start]
        yield found
        if page.last is not None and len(found) == len(page.found):
            at = page.last
        elif has_wrapped:
            if stored is not None:
                await cursor.write(None)
            return
        else:
            at, has_wrapped = begin, True
    await cursor.write(at)
