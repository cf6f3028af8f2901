"""The user's functions: how a module says which of its functions handle what, and how the worker finds them.

    @conversation(quiet=5, at_most=15)
    async def answer(context): ...

    @keyed("nextup", quiet=5, at_most=15)
    async def rank(context): ...

`OUTBOX_HANDLERS=package.module` names the modules, several with commas between them. A decorator only marks its
function: nothing is registered anywhere, so a module can be imported by tests and by several workers.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from firestore_outbox.errors import OutboxError
from firestore_outbox.lane.ref import FETCH, INBOUND, NOTIFY, OUTBOX, REMINDER, RUN, SESSION
from firestore_outbox.lane.state import Debounce

if TYPE_CHECKING:
    from firestore_outbox.handlers.context import Context

Function = Callable[["Context"], Awaitable[None]]
KeyOf = Callable[[Mapping[str, Any]], "str | None"]
"""The key of an event; None if it concerns no key, and is skipped."""
F = TypeVar("F", bound=Function)

CONVERSATION = INBOUND
"""The kind of lane that conversations run on."""
RESERVED = frozenset({OUTBOX, INBOUND, REMINDER, RUN, SESSION, FETCH, NOTIFY})
KIND = re.compile(r"[a-z][a-z0-9-]{0,39}")
_MARK = "__outbox_handlers__"


class BadHandlers(OutboxError):
    """The handlers cannot be used. The message names the module and what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One handler, as its decorator describes it."""

    kind: str
    function: Function
    quiet: float | None = None
    """Seconds without an event before a run begins. None: OUTBOX_DEBOUNCE_SECONDS."""
    at_most: float | None = None
    """Seconds after the first event at which it begins at the latest. None: OUTBOX_DEBOUNCE_MAX_SECONDS."""
    key: KeyOf | None = None
    """None: the sender of an event names its key."""
    adaptive: bool = False
    """Whether the debounce grows towards `at_most` under pressure."""


def conversation(
    *, quiet: float | None = None, at_most: float | None = None, adaptive: bool = False
) -> Callable[[F], F]:
    """Handle what people write: one run for a conversation that went quiet. Times in seconds.

    `adaptive` lets the wait grow from `quiet` towards `at_most` while 429 answers come or runs wait for a place."""
    return _marking(CONVERSATION, quiet, at_most, None, adaptive)


def keyed(
    kind: str,
    *,
    quiet: float | None = None,
    at_most: float | None = None,
    key: KeyOf | None = None,
    adaptive: bool = False,
) -> Callable[[F], F]:
    """Handle events of this kind, one run at a time for each key. Times in seconds.

    `key` takes the JSON of an event that came by HTTP and returns its key; None there skips the event.
    `adaptive` is as in `conversation`."""
    if not KIND.fullmatch(kind) or kind in RESERVED:
        raise BadHandlers(
            f"the kind {kind!r} cannot be used: take 1 to 40 of a-z, 0-9 and -, beginning with a letter, "
            f"and none of {', '.join(sorted(RESERVED))}"
        )
    return _marking(kind, quiet, at_most, key, adaptive)


def _marking(
    kind: str, quiet: float | None, at_most: float | None, key: KeyOf | None, adaptive: bool
) -> Callable[[F], F]:
    if (quiet or 0) < 0 or (at_most is not None and at_most < (quiet or 0)):
        raise BadHandlers(f"{kind}: quiet must be at least 0, and at_most at least quiet (both in seconds)")

    def mark(function: F) -> F:
        is_async = inspect.iscoroutinefunction(function)
        if not is_async:
            name = getattr(function, "__qualname__", repr(function))
            raise BadHandlers(f"{name} must be an async function: `async def {name}(context)`")
        made = Registration(kind=kind, function=function, quiet=quiet, at_most=at_most, key=key, adaptive=adaptive)
        setattr(function, _MARK, (*getattr(function, _MARK, ()), made))
        return function

    return mark


def debounces(handlers: Iterable[Registration], quiet: float, at_most: float) -> dict[str, Debounce]:
    """By kind. `quiet` and `at_most` are for handlers that name no times, in seconds."""
    found: dict[str, Debounce] = {}
    for one in handlers:
        shortest = quiet if one.quiet is None else one.quiet
        longest = max(at_most, shortest) if one.at_most is None else one.at_most
        found[one.kind] = Debounce(quiet=timedelta(seconds=shortest), most=timedelta(seconds=longest))
    return found


def load(modules: str) -> dict[str, Registration]:
    """The handlers of these modules by kind. `modules`: names with commas between them; empty: none."""
    found: dict[str, Registration] = {}
    for name in (part.strip() for part in modules.split(",") if part.strip()):
        for made in _in_module(name):
            other = found.get(made.kind)
            if other is not None and other.function is not made.function:
                raise BadHandlers(f"OUTBOX_HANDLERS: {made.kind!r} has two handlers; a kind has one")
            found[made.kind] = made
    return found


def _in_module(name: str) -> list[Registration]:
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise BadHandlers(
                f"OUTBOX_HANDLERS names {name}, which cannot be imported: is its folder on PYTHONPATH?"
            ) from error
        raise BadHandlers(f"OUTBOX_HANDLERS: {name} needs {error.name}, which is not installed") from error
    except BadHandlers:
        raise
    except Exception as error:
        raise BadHandlers(f"OUTBOX_HANDLERS: {name} failed to load: {type(error).__name__}: {error}") from error
    found = [made for value in vars(module).values() for made in getattr(value, _MARK, ())]
    if not found:
        raise BadHandlers(f"OUTBOX_HANDLERS: {name} has no function with @conversation or @keyed")
    return found
