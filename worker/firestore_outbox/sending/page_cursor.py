"""Where the next page of due documents begins, so that no document that appears late is passed over.

Firestore stamps a document when the request that writes it *arrives*; a reader sees the document when the commit
*ends*, tens of milliseconds later. So a page that was read at one moment may lack a document whose timestamp lies
before that moment. If the next page began behind the last document of this one, the late document would stay unseen for
the rest of the turn, and later messages of its thread would overtake it.

A *scan* is one or more pages, each behind the one before; it ends with a page that is not full. The scan's moment is
the read time of its first page. The next scan does not begin behind the last document, unless that is old enough:

    next scan begins behind    min(last document, the scan's moment - overlap)

Why this is enough. Let message A be acknowledged before message C of the same thread is sent. A scan whose first page
contains C was read after C became visible, so after A did. It contains A too, unless it began behind A's timestamp. It
began at `moment - overlap` of an earlier scan at the latest. Had A been visible at that moment, A would be known
already. Otherwise A became visible after that moment, and its timestamp is less than `overlap` older: not before the
cursor.

Later pages of a scan are read at a later time, and A may have appeared behind them. So a document of a later page may
go only if it was visible and due at the scan's moment (`is_confirmed`): then its predecessors were visible too. The
others wait for the next scan, which follows at once. Being visible is not enough: a message scheduled for 06:00 is
visible at 05:00, and a scan that began at 05:59 and reaches it at 06:01 has not seen a message of 05:59:30.

What it costs. A scan reads again what lies inside the overlap and is still queued, and recognises it by its id. A
claimed document is no longer in the query, and documents of an older backlog lie before the overlap: neither is read
twice. If much lies inside the overlap, the next page continues the scan instead of beginning another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

PAUSE_FOR_EACH = timedelta(milliseconds=10)
"""How much longer a holder waits before it looks for new documents, for each known document that the look would read
again: at most about a hundred such reads a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The next page begins behind this place in the order of the query."""

    due_at: datetime
    created_at: datetime | None = None
    """None: behind every document that came due at `due_at`."""
    request_id: str | None = None


def next_cursor(last: Cursor | None, scan_at: datetime, overlap: timedelta) -> Cursor | None:
    """Where the scan begins that follows one of the moment `scan_at`, whose pages so far end with the document `last`.

    None: the place of that document is not known, and the next scan begins at the start."""
    if last is None:
        return None
    safe_until = scan_at - overlap
    return last if last.due_at <= safe_until else Cursor(due_at=safe_until)


def is_confirmed(visible_at: datetime, due_at: datetime, scan_at: datetime) -> bool:
    """Whether a scan of the moment `scan_at` has all predecessors of a document.

    A predecessor is a message of the same thread that comes due earlier and was acknowledged before the document was
    both visible and due."""
    return max(visible_at, due_at) <= scan_at
