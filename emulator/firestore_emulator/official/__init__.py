"""Google's own Firestore emulator, the judge of ours: find it, start it, steer it, stop it.

    with OfficialEmulator.start(rules=Path("firestore.rules")) as emulator:
        client = AsyncClient(...)  # with FIRESTORE_EMULATOR_HOST=emulator.host

`find` says what this machine has: one that runs already (FIRESTORE_EMULATOR_HOST), one that can be started (a jar
and a Java), or `Missing`, which lists every place that was looked at and what to install. A running one is used as
it is, and never stopped: it is not ours.
"""

from firestore_emulator.official.find import (
    HOST_VARIABLE,
    EmulatorMissing,
    Installed,
    Missing,
    Running,
    find,
    find_installed,
)
from firestore_emulator.official.process import EmulatorFailed
from firestore_emulator.official.steering import OfficialEmulator, RulesRejected

__all__ = [
    "HOST_VARIABLE",
    "EmulatorFailed",
    "EmulatorMissing",
    "Installed",
    "Missing",
    "OfficialEmulator",
    "RulesRejected",
    "Running",
    "find",
    "find_installed",
]
