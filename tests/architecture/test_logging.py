"""firestore_outbox/log.py is the one place that logs: a line written elsewhere has no action, account or mask."""

from __future__ import annotations

import ast
import inspect
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from firestore_outbox import log

ROOT = Path(__file__).resolve().parents[2]
LOGGERS = ("worker/firestore_outbox/log.py",)
NOT_DEPLOYED = "worker/firestore_outbox/local/"
"""Simulators and the dev stack handle no customer's data, and have loggers of their own."""
NOT_EVENTS = {"configure", "configure_beside"}
ABOUT_NO_ACCOUNT = {
    "billing_customer_unknown",
    "billing_refused",
    "limit_throttled",
    "pull_failed",
    "sweep_failed",
    "sweep_found",
    "unknown_accounts_limited",
}
"""Events about all accounts together, or about one that is not known."""


def loggers_below(root: Path) -> Iterator[str]:
    for package in ("worker", "functions"):
        for file in sorted((root / package).rglob("*.py")):
            where = file.relative_to(root).as_posix()
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                if where in LOGGERS or where.startswith(NOT_DEPLOYED):
                    continue
                if any(name.split(".")[0] == "logging" for name in names):
                    yield f"{where}:{node.lineno}"  # type: ignore[attr-defined]  # imports have one


def test_nothing_but_the_logging_module_logs() -> None:
    assert list(loggers_below(ROOT)) == []


def test_a_logger_of_its_own_is_found(tmp_path: Path) -> None:
    (tmp_path / "worker").mkdir()
    (tmp_path / "worker" / "other.py").write_text("def f():\n    from logging import getLogger\n")
    assert list(loggers_below(tmp_path)) == ["worker/other.py:2"]


# --- every line


PHONE = "+4915112345678"
URL = "https://user:hunter2@hook.example/in?token=hunter2"
TEXT = "'Dear Anna, your results are here'"
QUOTATION = f"the provider refuses {PHONE} at {URL}"
WORDS = f"parts is {TEXT}: call {PHONE} or {URL}"


class Failure(Exception):
    """Its words hold all that a line must not have."""


def raised() -> Failure:
    try:
        try:
            raise KeyError(WORDS)
        except KeyError as error:
            raise Failure(WORDS) from error
    except Failure as error:
        return error


EVENTS = {
    name: function
    for name, function in inspect.getmembers(log, inspect.isfunction)
    if function.__module__ == log.__name__ and not name.startswith("_") and name not in NOT_EVENTS
}
ARGUMENTS: dict[str, Any] = {
    "account_id": "shop",
    "lane": f"inbound:shop__{PHONE}",
    "error": raised(),
    "provider_message_id": f"true_{PHONE.removeprefix('+')}@c.us_AB12",
    "sentence": WORDS,
    "retry_at": datetime(2026, 3, 1, tzinfo=UTC),
    "connected": True,
    "woken": True,
    "seconds": 1.5,
}
QUOTED = {"reason", "detail"}
"""Words of others, which may hold a number or an address; adapters take texts out of them before (redaction.py)."""
WORDS_OF_OURS = {
    "account_unusable",
    "billing_unavailable",
    "credentials_stale",
    "credentials_unavailable",
    "key_unavailable",
    "storage_unavailable",
}
"""Their errors and sentences are made here, of settings and of places: no message is near."""
COUNTS = {"gap_seconds", "overlap_seconds", "count", "lanes", "accounts", "threads", "fence", "size_bytes"}


def printed(capsys: pytest.CaptureFixture[str], name: str) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for parameter in inspect.signature(EVENTS[name]).parameters:
        if parameter in QUOTED or (name in WORDS_OF_OURS and parameter == "sentence"):
            given[parameter] = QUOTATION
        elif name in WORDS_OF_OURS and parameter == "error":
            given[parameter] = Failure(QUOTATION)
        elif parameter in COUNTS:
            given[parameter] = 7
        else:
            given[parameter] = ARGUMENTS.get(parameter, f"a-{parameter}")
    with configured():
        EVENTS[name](**given)
    (line,) = capsys.readouterr().err.splitlines()
    return dict(json.loads(line))


@contextmanager
def no_handlers() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    root.handlers[:] = []
    try:
        yield root
    finally:
        root.handlers[:] = before
        root.setLevel(level)


@contextmanager
def configured() -> Iterator[None]:
    """As in a process of its own: `configure` closes the handlers that it finds, so pytest's are put aside."""
    with no_handlers():
        log.configure("DEBUG")
        yield


@pytest.mark.parametrize("name", EVENTS)
def test_every_line_has_its_action_and_its_account_and_quotes_nothing_private(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    line = printed(capsys, name)
    assert line["action"] == name
    assert line["accountId"] == (None if name in ABOUT_NO_ACCOUNT else "shop")
    for private in (PHONE.removeprefix("+"), "hunter2", "hook.example", "Anna"):
        assert private not in json.dumps(line)


def test_an_exception_is_logged_with_its_lines_of_code_and_without_its_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with configured():
        log.lane_failed("outbox:shop", "shop", raised(), failures=1, retry_at=None)
    trace = json.loads(capsys.readouterr().err)["exception"]
    assert trace.splitlines()[0].startswith("  architecture/test_logging.py:")
    assert [line for line in trace.splitlines() if not line.startswith(" ")] == ["KeyError", "then", "Failure"]


def test_a_number_has_the_same_mark_in_every_line(capsys: pytest.CaptureFixture[str]) -> None:
    with configured():
        log.account_parked("shop", f"no such number {PHONE}")
        log.account_parked("shop", "no such number 4915112345678!")
        log.account_parked("shop", "no such number +49 151 1234-5678")
    reasons = {json.loads(line)["reason"].rstrip("!") for line in capsys.readouterr().err.splitlines()}
    assert len(reasons) == 1


# --- what libraries log


def test_lines_of_libraries_are_reduced(capsys: pytest.CaptureFixture[str]) -> None:
    with configured():
        logging.getLogger("httpx").info("HTTP Request: POST %s", URL)
        logging.getLogger("httpcore.http11").debug("send_request_headers %s", URL)
        logging.getLogger("another").info("a text of %s", TEXT)
        logging.getLogger("another").error(
            'Exception on %s\nTraceback\n  File "x.py", line 1\nValueError: %s', URL, TEXT
        )
        logging.getLogger("another").error("it failed", exc_info=raised())
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert first["message"].startswith("Exception on <url #")
    assert first["message"].endswith('File "x.py", line 1')
    assert (first["action"], first["accountId"], first["logger"]) == ("library", None, "another")
    assert "Anna" not in json.dumps([first, second])
    assert second["exception"].endswith("Failure")


def test_a_process_that_is_served_by_another_program_writes_whole_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """functions-framework may have set a handler without a form before it loads our functions."""
    with no_handlers() as root:
        root.addHandler(logging.StreamHandler(sys.stderr))
        log.configure_beside("INFO")
        log.account_parked("shop", "it refuses")
        assert json.loads(capsys.readouterr().err)["accountId"] == "shop"
