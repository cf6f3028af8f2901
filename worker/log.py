"""One named function for each event worth a line. Each line is JSON with a stable `action`, as Cloud Logging likes it.

No message's text and no credential is ever logged.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

_log = logging.getLogger("outbox")


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"severity": record.levelname, "message": record.getMessage()}
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def configure(level: str = "INFO") -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)


def _line(level: int, action: str, message: str, **fields: object) -> None:
    if _log.isEnabledFor(level):
        _log.log(level, message, extra={"fields": {"action": action, **fields}})


def lane_acquired(lane: object, entry: str, fence: int) -> None:
    _line(logging.DEBUG, "lane_acquired", "a lane was acquired", lane=str(lane), entry=entry, fence=fence)


def lane_released(lane: object, how: str, at: object) -> None:
    _line(logging.DEBUG, "lane_released", "a lane was released", lane=str(lane), how=how, at=at)


def lane_lost(lane: object, fence: int) -> None:
    _line(logging.WARNING, "lane_lost", "a lane was lost to another holder", lane=str(lane), fence=fence)


def lane_failed(lane: object, error: BaseException) -> None:
    _log.error(
        "a lane's run failed; its lease will end by itself",
        exc_info=error,
        extra={"fields": {"action": "lane_failed", "lane": str(lane)}},
    )


def lane_crowded(lane: object, threads: int) -> None:
    _line(
        logging.WARNING,
        "lane_crowded",
        "so many threads wait for a retry that a lane takes no others",
        lane=str(lane),
        threads=threads,
    )


def claim_conflict(lane: object, count: int) -> None:
    _line(logging.INFO, "claim_conflict", "documents changed before they were claimed", lane=str(lane), count=count)


def visible_late(lane: object, request_id: str, gap_seconds: float, overlap_seconds: float) -> None:
    _line(
        logging.WARNING,
        "visible_late",
        "a document became visible so long after its server timestamp that OUTBOX_OVERLAP_SECONDS may be too short",
        lane=str(lane),
        requestId=request_id,
        gapSeconds=gap_seconds,
        overlapSeconds=overlap_seconds,
    )


def attempt_ended(request_id: str, outcome: str, status: str) -> None:
    _line(logging.DEBUG, "attempt_ended", "an attempt ended", requestId=request_id, outcome=outcome, status=status)


def message_refused(request_id: str, sentence: str) -> None:
    _line(logging.WARNING, "message_refused", "a malformed outbox document", requestId=request_id, reason=sentence)


def account_unusable(account_id: str, sentence: str) -> None:
    _line(logging.ERROR, "account_unusable", "an account cannot send", accountId=account_id, reason=sentence)


def account_parked(account_id: str, reason: str) -> None:
    _line(logging.ERROR, "account_parked", "the provider refuses the account", accountId=account_id, reason=reason)


def receipt_ignored(request_id: str | None, because: str) -> None:
    _line(logging.DEBUG, "receipt_ignored", "a receipt changed nothing", requestId=request_id, because=because)


def receipt_unmatched(account_id: str, provider_message_id: str | None) -> None:
    _line(
        logging.INFO,
        "receipt_unmatched",
        "a receipt for a message we do not know; it is looked at again",
        accountId=account_id,
        providerMessageId=provider_message_id,
    )


def receipt_dropped(account_id: str, provider_message_id: str | None, request_id: str | None) -> None:
    _line(
        logging.WARNING,
        "receipt_dropped",
        "a receipt for a message that never came to be known",
        accountId=account_id,
        providerMessageId=provider_message_id,
        requestId=request_id,
    )


def webhook_event_unusable(account_id: str, kind: str, reason: str, count: int = 1) -> None:
    """`reason` is the first one's."""
    _line(
        logging.WARNING,
        "webhook_event_unusable",
        "events of a genuine webhook were left out",
        accountId=account_id,
        kind=kind,
        reason=reason,
        count=count,
    )


def webhook_put_off(account_id: str, error: BaseException) -> None:
    _line(
        logging.ERROR,
        "webhook_put_off",
        "a webhook could not be taken; its provider sends it again",
        accountId=account_id,
        reason=f"{type(error).__name__}: {error}"[:300],
    )


def session_changed(account_id: str, connected: bool, woken: bool) -> None:
    _line(
        logging.INFO,
        "session_changed",
        "an account's session came up" if connected else "an account's session went down",
        accountId=account_id,
        woken=woken,
    )


def sweep_found(lanes: int, accounts: int) -> None:
    level = logging.WARNING if lanes or accounts else logging.DEBUG
    _line(level, "sweep_found", "the sweep woke what was dropped", lanes=lanes, accounts=accounts)


def bad_task(reason: str) -> None:
    _line(logging.ERROR, "bad_task", "a task that retrying cannot mend was dropped", reason=reason)


def reminder_invalid(reminder_id: str, sentence: str) -> None:
    _line(logging.ERROR, "reminder_invalid", "a reminder cannot fire", reminderId=reminder_id, reason=sentence)


def targets_invalid(run_id: str, chunk: str, sentence: str) -> None:
    _line(logging.ERROR, "targets_invalid", "a list of targets is left out", runId=run_id, chunk=chunk, reason=sentence)


def run_ended(run_id: str, status: str) -> None:
    _line(logging.INFO, "run_ended", "a run has ended", runId=run_id, status=status)
