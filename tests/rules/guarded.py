"""A project on one of the emulators with security rules in force: it tries cases and reads the coverage."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import httpx
from google.api_core.exceptions import PermissionDenied

from tests.conformance.backends import Place
from tests.patience import PATIENCE_SECONDS
from tests.rules.actions import Case
from tests.rules.people import People, api_on
from tests.rules.scene import Scene

RULES = Path(__file__).parents[2] / "firestore.rules"


class RulesEmulator:
    """What all projects share."""

    def __init__(self, place: Place) -> None:
        self.address = place.address
        self.api = api_on(place.channel)


class GuardedProject:
    def __init__(self, emulator: RulesEmulator) -> None:
        project = f"rules-{secrets.token_hex(4)}"
        self._admin = f"http://{emulator.address}/emulator/v1/projects/{project}"
        self.people = People(emulator.api, project)
        self.tried: set[str] = set()
        """The names of the cases."""

    async def load(self, source: str) -> None:
        body = {"rules": {"files": [{"name": "firestore.rules", "content": source}]}}
        await self._http("PUT", "securityRules", body)

    async def coverage(self) -> list[dict[str, Any]]:
        """For each expression in the rules: where it is, and how often it had which value."""
        report: list[dict[str, Any]] = (await self._http("GET", "ruleCoverage", None))["report"]
        return report

    async def scene(self) -> Scene:
        scene = Scene()
        await scene.set_up(self.people.server_side())
        return scene

    async def is_allowed(self, case: Case) -> bool:
        """In a scene of its own. Any answer but the rules' refusal is an error."""
        self.tried.add(case.name)
        scene = await self.scene()
        try:
            await case.act(scene, self.people.client_of(case.who), case.who)
        except PermissionDenied:
            return False
        return True

    async def _http(self, method: str, what: str, body: dict[str, Any] | None) -> Any:
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
            answer = await http.request(
                method, f"{self._admin}:{what}", json=body, headers={"content-type": "application/json"}
            )
        assert answer.is_success, answer.text
        return answer.json()
