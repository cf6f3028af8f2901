"""What a listener of the blocking Python client was told, which comes from a thread of its own."""

from __future__ import annotations

import threading

from tests.patience import PATIENCE_SECONDS


class Views:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.all: list[str] = []

    def add(self, view: str) -> None:
        with self._changed:
            self.all.append(view)
            self._changed.notify_all()

    def wait_for(self, wanted: str) -> None:
        """Until this is what was told last."""
        with self._changed:
            came = self._changed.wait_for(lambda: self.all[-1:] == [wanted], timeout=PATIENCE_SECONDS)
            assert came, f"{wanted!r} did not come; seen: {self.all}"
