"""Why a simulated run cannot go on, or must not pass: told with the tasks that wait, and where."""

from __future__ import annotations

import asyncio
from types import CoroutineType
from typing import Any

_TASKS_IN_MESSAGE = 20


class SimulationError(RuntimeError):
    """The run cannot go on, or must not pass.

    SimulationError
    ├── Deadlock          nothing is ready and no timer is set
    ├── Livelock          callbacks run for ever at one instant
    ├── TimeLimitReached  virtual time went past the limit of the run
    ├── UnhandledError    an exception that would have gone unseen
    └── NotSimulated      sockets, signals, subprocesses, threads (is a NotImplementedError too)
    """


class Deadlock(SimulationError):
    """Neither a ready callback nor a timer: what is awaited can never happen."""


class Livelock(SimulationError):
    """More rounds at one instant than the bound: a task spins without waiting."""


class TimeLimitReached(SimulationError):
    """The next timer lies past the time limit."""


class UnhandledError(SimulationError):
    """What reached only the loop's exception handler: a callback raised, a failed task was dropped."""

    def __init__(self, contexts: list[dict[str, Any]]) -> None:
        self.contexts = tuple(contexts)
        lines = [_describe_context(context) for context in contexts]
        super().__init__("\n  ".join([f"{len(lines)} unhandled in the loop:", *lines]))


class NotSimulated(SimulationError, NotImplementedError):
    """The call needs a real file descriptor, signal, process or thread."""


def describe_tasks(tasks: list[asyncio.Task[Any]]) -> str:
    shown = tasks[:_TASKS_IN_MESSAGE]
    lines = [f"\n  {task.get_name()}: {_describe_place(task.get_coro())}" for task in shown]
    if len(tasks) > _TASKS_IN_MESSAGE:
        lines.append(f"\n  and {len(tasks) - _TASKS_IN_MESSAGE} more")
    return "".join(lines) or " no task"


def _describe_place(coro: object) -> str:
    """Where a suspended coroutine stands: the innermost coroutine that it awaits, with file and line."""
    name = getattr(coro, "__qualname__", repr(coro))
    while isinstance(coro, CoroutineType) and isinstance(coro.cr_await, CoroutineType):
        coro = coro.cr_await
    if not isinstance(coro, CoroutineType) or coro.cr_frame is None:
        return name
    inner = "" if coro.__qualname__ == name else f" in {coro.__qualname__}"
    return f"{name}{inner} at {coro.cr_frame.f_code.co_filename}:{coro.cr_frame.f_lineno}"


def _describe_context(context: dict[str, Any]) -> str:
    culprit = context.get("task") or context.get("future") or context.get("handle") or context.get("asyncgen")
    parts = [str(context.get("message", "error")), repr(context.get("exception") or ""), repr(culprit or "")]
    return ": ".join(part for part in parts if part not in ("", "''"))
