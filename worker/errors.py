"""The errors that cross module borders.

OutboxError
  StoreUnavailable    Firestore did not answer, or not in time; whether a commit was applied is not known
  NotFound            a document that was named does not exist
"""

from __future__ import annotations


class OutboxError(Exception):
    """Anything this package raises on purpose."""


class StoreUnavailable(OutboxError):
    """Firestore did not answer. A commit may or may not have been applied; whoever asked must look."""


class NotFound(OutboxError):
    """The named document does not exist."""
