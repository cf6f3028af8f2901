"""Where the parts of a stack are, and the credentials with which they call each other."""

from __future__ import annotations

import os
from pathlib import Path

from firestore_emulator.stack import HOST
from firestore_outbox.local.dev_settings import DevSettings
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET
from firestore_outbox.providers.credentials import EVERYBODY, FILE_VARIABLE, SECRETS_VARIABLE, VARIABLE
from firestore_outbox.providers.store_secrets import FileKeeper


class DevAddresses:
    def __init__(self, settings: DevSettings) -> None:
        self.settings = settings
        self.ports: dict[str, int] = {}
        self._logs = Path()

    @property
    def firestore(self) -> str:
        return f"{HOST}:{self.ports['firestore']}"

    @property
    def tasks(self) -> str:
        return f"{HOST}:{self.ports['tasks']}"

    @property
    def _functions(self) -> str:
        return f"{HOST}:{self.ports['functions']}"

    @property
    def worker_url(self) -> str:
        return f"http://{HOST}:{self.ports['worker']}"

    @property
    def provider_url(self) -> str:
        return f"http://{HOST}:{self.ports['provider']}"

    @property
    def page_url(self) -> str | None:
        return f"http://{HOST}:{self.ports['page']}" if "page" in self.ports else None

    @property
    def console_url(self) -> str | None:
        return f"http://{HOST}:{self.ports['console']}" if "console" in self.ports else None

    @property
    def _credentials_file(self) -> Path | None:
        """The file of credentials, which `outbox accounts add` and the parts share: an account's own credentials win
        over those of the simulator. None: the settings or the environment name another place."""
        if any(name in self.settings.environment for name in (FILE_VARIABLE, VARIABLE, SECRETS_VARIABLE)):
            return None
        if os.environ.get(FILE_VARIABLE):
            return None
        return (self.settings.data or self._logs).absolute() / "credentials.json"

    @property
    def _credentials_variable(self) -> dict[str, str]:
        file = self._credentials_file
        if file is not None:
            return {FILE_VARIABLE: str(file)}
        return {FILE_VARIABLE: os.environ[FILE_VARIABLE]} if os.environ.get(FILE_VARIABLE) else {}

    async def _keep_credentials(self) -> None:
        file = self._credentials_file
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            await FileKeeper(file).keep(EVERYBODY, self._credentials)

    @property
    def _credentials(self) -> dict[str, str]:
        """Credentials for each account that has none of its own: the simulator answers for every provider."""
        return {
            "webhookSecret": DEFAULT_SECRET,
            "token": "local",
            "apiKey": "local",
            "phoneNumberId": "{accountId}",  # literally: the adapter fills it in
            "verifyToken": "local",
            "url": f"{self.provider_url}/signed_webhook",
            "signingSecret": DEFAULT_SECRET,
            "baseUrl": f"{self.provider_url}/waha",
            "session": "{accountId}",
        }
