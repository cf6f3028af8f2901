"""A running emulator of Google's: its rules, its triggers, its documents cleared, its end."""

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from firestore_emulator.official.find import HOST_VARIABLE, EmulatorMissing, Missing, Running, find, find_installed
from firestore_emulator.official.process import EmulatorFailed, Process, answers, start_process

PROJECT = "demo-outbox"


class RulesRejected(EmulatorFailed):
    """The security rules do not compile. The text is the compiler's."""


class OfficialEmulator:
    """A running emulator. Made by `start`; a context manager that stops what it started."""

    def __init__(self, host: str, process: Process | None) -> None:
        self.host = host
        self._process = process
        # No proxy from the environment: the emulator is on this machine.
        self._http = httpx.Client(base_url=f"http://{host}", trust_env=False, timeout=30)

    @classmethod
    def start(
        cls,
        *,
        port: int | None = None,
        rules: Path | None = None,
        functions_emulator: str | None = None,
        log: Path | None = None,
        deadline: timedelta = timedelta(seconds=60),
        environ: Mapping[str, str] = os.environ,
    ) -> Self:
        """Return an emulator that answers; raise EmulatorMissing or EmulatorFailed.

        port: a free one if not given. rules: a file; none means that everything is allowed.
        functions_emulator: HOST:PORT that gets the events of the triggers. log: where the process writes; a temporary
        file if not given. A running emulator (FIRESTORE_EMULATOR_HOST) is used unless a port or a functions
        emulator is asked for, which only a new one can have.
        """
        found = find(environ)
        if isinstance(found, Running):
            if port is None and functions_emulator is None:
                return cls._attach(found, rules)
            found = find_installed(environ)
        if isinstance(found, Missing):
            raise EmulatorMissing(found)
        options = [f"--rules={rules}"] if rules else []
        options += [f"--functions_emulator={functions_emulator}"] if functions_emulator else []
        process = start_process(found, port=port, options=options, log=log, deadline=deadline, environ=environ)
        emulator = cls(process.host, process)
        emulator._load_rules_of(rules)
        return emulator

    @classmethod
    def _attach(cls, running: Running, rules: Path | None) -> Self:
        emulator = cls(running.host, None)
        if not answers(running.host):
            emulator.stop()
            raise EmulatorFailed(
                f"{HOST_VARIABLE}={running.host}, but no Firestore emulator answers there: start it or unset it"
            )
        emulator._load_rules_of(rules)
        return emulator

    def _load_rules_of(self, rules: Path | None) -> None:
        """The process takes rules that do not compile without a word, so they are loaded over HTTP too."""
        if rules is None:
            return
        try:
            self.load_rules(rules.read_text(encoding="utf-8"))
        except BaseException:
            self.stop()
            raise

    @property
    def environment(self) -> dict[str, str]:
        """What a client's process needs in its environment to find this emulator."""
        return {HOST_VARIABLE: self.host}

    def load_rules(self, source: str, *, project: str = PROJECT) -> None:
        """Replace the project's security rules; RulesRejected if they do not compile."""
        body = {"rules": {"files": [{"name": "security.rules", "content": source}]}}
        response = self._send("PUT", f"/emulator/v1/projects/{project}:securityRules", body)
        if response.status_code == httpx.codes.BAD_REQUEST:
            raise RulesRejected(_message(response))
        self._check(response)

    def clear(self, *, project: str = PROJECT, database: str = "(default)") -> None:
        """Delete every document. Triggers for deletion fire."""
        path = f"/emulator/v1/projects/{project}/databases/{database}/documents"
        self._check(self._send("DELETE", path, None))

    def register_trigger(
        self,
        name: str,
        *,
        document: str,
        event_type: str = "google.cloud.firestore.document.v1.created",
        project: str = PROJECT,
        database: str = "(default)",
    ) -> None:
        """Send events about documents that match the pattern (`outbox/{id}`) to the functions emulator.

        They arrive as POST /functions/projects/{project}/triggers/{name}: binary CloudEvents with a base64 body.
        """
        body = {
            "eventType": event_type,
            "database": database,
            "namespace": "(default)",
            "document": {"value": document, "matchType": "PATH_PATTERN"},
        }
        path = f"/emulator/v1/projects/{project}/eventarcTrigger?eventarcTriggerId={name}"
        self._check(self._send("POST", path, body))

    def wait(self) -> None:
        """Block until the process that we started ends by itself, as a command line does."""
        if self._process:
            self._process.wait()

    def stop(self) -> None:
        """End the process, if we started it. A second call does nothing."""
        self._http.close()
        if self._process:
            self._process.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _send(self, method: str, path: str, body: dict[str, Any] | None) -> httpx.Response:
        try:  # without this content type the emulator answers 404
            return self._http.request(method, path, json=body, headers={"content-type": "application/json"})
        except httpx.HTTPError as error:
            log = self._process.log_tail() if self._process else ""
            raise EmulatorFailed(f"{method} {path} on {self.host}: {error!r}{log}") from error

    def _check(self, response: httpx.Response) -> None:
        if not response.is_success:
            request = response.request
            raise EmulatorFailed(
                f"{request.method} {request.url} answered {response.status_code}: {_message(response)}"
            )


def _message(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return response.text
