"""Security rules from a file, loaded again whenever the file changes.

A file that does not compile stops the emulator from starting. If an edit breaks it later, the rules before stay in
force until it compiles again, and the log says what is wrong.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from firestore_emulator.rules.guard import Guard, RulesFileError
from firestore_emulator.rules.ruleset import RulesRejected

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
"""Between two looks at the file: short enough that who saves it and turns to the browser finds the new rules."""


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
        """Load the file if it is not as it was. True: other rules are in force now."""
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
        """Load the file if it has changed, and say in the log what came of it."""
        try:
            if self.load():
                log.warning("%s was loaded again", self._path, extra={"action": "rules_loaded"})
        except RulesRejected as error:
            log.warning("%s: %s\nThe rules before stay in force.", self._path, error, extra={"action": "rules_bad"})
        except (OSError, UnicodeDecodeError):
            return  # it is being written: the next look finds it
