"""Security rules from a file, loaded again whenever the file changes.

The emulator does not start with a file that does not compile. If a later edit breaks the file, the earlier rules stay
in force until it compiles again, and the log has the errors.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from firestore_emulator.rules.guard import Guard, RulesFileError
from firestore_emulator.rules.ruleset import RulesRejected

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
"""Between two looks at the file: shorter than it takes to save the file and turn to the browser."""


class RulesFile:
    def __init__(self, path: Path, guard: Guard) -> None:
        """Loads the file; RulesFileError if that fails."""
        self._path = path
        self._guard = guard
        self._seen: str | None = None
        self._follower: asyncio.Task[None] | None = None
        try:
            self.load()
        except (OSError, UnicodeDecodeError) as error:
            raise RulesFileError(f"{path}: the security rules cannot be read: {error}") from None
        except RulesRejected as error:
            raise RulesFileError(f"{path}: {error}") from None

    def load(self) -> bool:
        """Load the file if its content has changed. True: other rules are in force now."""
        source = self._path.read_text(encoding="utf-8")
        if source == self._seen:
            return False
        self._seen = source
        self._guard.load(source)
        return True

    def start(self) -> None:
        self._follower = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.gather(self._follower, return_exceptions=True)

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        """Load the file if it has changed, and log the outcome."""
        try:
            if self.load():
                log.info("%s was loaded again", self._path, extra={"action": "rules_loaded"})
        except RulesRejected as error:
            log.warning("%s: %s\nThe rules before stay in force.", self._path, error, extra={"action": "rules_bad"})
        except (OSError, UnicodeDecodeError):
            return  # an editor is writing the file: the next look reads it
