"""The errors that cross module borders.

OutboxError
  StoreUnavailable    Firestore did not answer, or not in time; whether a commit was applied is not known
  Unwritable          Firestore will never take this commit: a document would be too large, above all
  NotFound            a document that was named does not exist
"""

from __future__ import annotations


class OutboxError(Exception):
    """Anything this package raises on purpose."""


class StoreUnavailable(OutboxError):
    """Firestore did not answer. A commit may or may not have been applied; whoever asked must look."""


class Unwritable(OutboxError):
    """Firestore refuses the commit for what it says. Nothing was written, and trying again is no use."""


class NotFound(OutboxError):
    """The named document does not exist."""
