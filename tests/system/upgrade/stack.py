"""The whole product on one database, whose functions and workers change between two versions, by kill -9."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from firestore_outbox.local.dev import PROJECT
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET
from tests.patience import PATIENCE_SECONDS
from tests.system.chaos.plan import WORKERS
from tests.system.chaos.stack import FIRESTORE_VARIABLE, ROOT, ChaosStack
from tests.system.chaos.tempo import tempo_of
from tests.system.upgrade import previous

CHANGING = ("functions", *WORKERS)
"""The parts that are deployed. Firestore, Cloud Tasks and the provider belong to others."""
CREDENTIALS = {"token": "local", "webhookSecret": DEFAULT_SECRET, "phoneNumberId": "{accountId}", "verifyToken": "v"}


class RollingStack(ChaosStack):
    """Every part that changes begins with the previous version."""

    def __init__(self, directory: Path, tree: Path) -> None:
        super().__init__(directory, tempo_of(0.5))
        self._trees = {"previous": tree, "new": ROOT}
        self.versions = dict.fromkeys(CHANGING, "previous")

    def environment_of(self, part: str) -> dict[str, str]:
        found = super().environment_of(part)
        if part not in self.versions:
            return found
        provider = found["OUTBOX_SIMULATED_URL"]
        return {
            **found,
            "OUTBOX_CREDENTIALS": json.dumps({"*": CREDENTIALS}),
            "OUTBOX_WHATSAPP_CLOUD_URL": f"{provider}/whatsapp_cloud/v23.0",
            **previous.environment(self._trees[self.versions[part]]),
        }

    def worker_module(self, name: str) -> str:
        return "tests.chaos.clocked_worker" if self.versions[name] == "previous" else super().worker_module(name)

    def functions_module(self) -> str:
        return "emulator.serve_app" if self.versions["functions"] == "previous" else super().functions_module()

    async def deploy(self, version: str, *parts: str) -> None:
        """Ends each part without warning and starts it as that version, one after the other."""
        for name in parts:
            part = self.parts[name]
            self.versions[name] = version
            part.give(self.environment_of(name))
            await part.kill()
            self.spread_tasks()
            await part.start()
            self.spread_tasks()

    def outbox(self, *words: str) -> str:
        """The new version's command, as an operator runs it; its output."""
        environment = {
            **os.environ,
            FIRESTORE_VARIABLE: self.links["us>firestore"].address,
            "OUTBOX_PROJECT": PROJECT,
            "OUTBOX_CREDENTIALS": json.dumps({"*": CREDENTIALS}),
        }
        command = [sys.executable, "-m", "firestore_outbox.cli", *words]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout
