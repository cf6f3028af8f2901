"""The errors that cross module borders.

OutboxError
  Unavailable         a service that we depend on cannot be used now; the same work can succeed later
    StoreUnavailable  Firestore did not answer, or not in time; whether a commit was applied is not known
    TasksUnavailable  Cloud Tasks did not take a task, after several tries; the sweep finds the lane
  Unwritable          Firestore will never take this commit: a document would be too large, above all
  NotFound            a document that was named does not exist
"""

from __future__ import annotations


class OutboxError(Exception):
    """Anything this package raises on purpose."""


class Unavailable(OutboxError):
    """A service that we depend on cannot be used now. The same work can succeed later."""


class StoreUnavailable(Unavailable):
    """Firestore did not answer. A commit may or may not have been applied; the caller must look."""


class TasksUnavailable(Unavailable):
    """Cloud Tasks did not take a task, after several tries. A task is a hint: the sweep finds what it was for."""


class Unwritable(OutboxError):
    """Firestore refuses the commit for what it says. Nothing was written, and trying again is no use."""


class NotFound(OutboxError):
    """The named document does not exist."""
