"""The facts for `outbox doctor`, asked from Google's REST APIs with the credentials at hand. It changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from firestore_outbox.operations.doctor import (
    SECRET_PREFIX,
    SERVICE_ACCOUNTS,
    Absent,
    Answer,
    Fact,
    Facts,
    Refused,
)

CALL_SECONDS = 30.0
"""The longest that one call may take."""
MOST_PAGES = 50
LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class AskGoogle:
    http: httpx.AsyncClient
    token: str
    """An OAuth access token; empty for an emulator."""
    emulator: str = ""
    """HOST:PORT of a server that answers for all APIs, each below its name; empty means Google's."""

    async def facts(self, *, project: str, location: str, queue: str, worker_url: str) -> Facts:
        database = f"v1/projects/{project}/databases/(default)"
        here = f"projects/{project}/locations/{location}"
        emails = {name: f"{name}@{project}.iam.gserviceaccount.com" for name in SERVICE_ACCOUNTS}
        answers = await asyncio.gather(
            self._get("firestore", database),
            self._all("firestore", f"{database}/collectionGroups/-/indexes", "indexes"),
            self._all("firestore", f"{database}/collectionGroups/-/fields", "fields", filter="ttlConfig:*"),
            self._ruleset(project),
            self._get("cloudtasks", f"v2/{here}/queues/{queue}"),
            self._get("cloudscheduler", f"v1/{here}/jobs/outbox-sweep"),
            self._get("run", f"v2/{here}/services/outbox-worker"),
            self._all("secretmanager", f"v1/projects/{project}/secrets", "secrets", filter=f"name:{SECRET_PREFIX}"),
            self._all("firestore", f"{database}/documents/accounts", "documents", **{"mask.fieldPaths": "provider"}),
            *(self._get("iam", f"v1/projects/{project}/serviceAccounts/{email}") for email in emails.values()),
        )
        return Facts(
            project=project,
            location=location,
            queue=queue,
            worker_url=worker_url,
            database=answers[0],
            indexes=answers[1],
            ttl=answers[2],
            rules=answers[3],
            task_queue=answers[4],
            job=answers[5],
            worker=answers[6],
            secrets=answers[7],
            accounts=answers[8],
            service_accounts=dict(zip(emails, answers[9:], strict=True)),
        )

    async def _ruleset(self, project: str) -> Fact:
        release = await self._get("firebaserules", f"v1/projects/{project}/releases/cloud.firestore")
        if not isinstance(release, Answer):
            return release
        return await self._get("firebaserules", f"v1/{release.content.get('rulesetName')}")

    async def _all(self, api: str, path: str, items: str, **parameters: str) -> Fact:
        """All pages of a list as one answer."""
        found: list[Any] = []
        for _ in range(MOST_PAGES):
            page = await self._get(api, path, parameters)
            if not isinstance(page, Answer):
                return page
            found += page.content.get(items, ())
            token = page.content.get("nextPageToken")
            if not token:
                break
            parameters["pageToken"] = str(token)
        return Answer({items: found})

    async def _get(self, api: str, path: str, parameters: Mapping[str, str] | None = None) -> Fact:
        base = f"http://{self.emulator}/{api}" if self.emulator else f"https://{api}.googleapis.com"
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            answer = await self.http.get(
                f"{base}/{quote(path, safe='/()@-')}", params=parameters, headers=headers, timeout=CALL_SECONDS
            )
            content = answer.json()
        except (httpx.HTTPError, ValueError) as error:
            return Refused(f"{api}.googleapis.com did not answer ({type(error).__name__})")
        if answer.status_code == 404:
            return Absent()
        if answer.is_success and isinstance(content, dict):
            return Answer(content)
        error_body = content.get("error") if isinstance(content, dict) else None
        message = error_body.get("message") if isinstance(error_body, dict) else None
        return Refused(f"{api}: {message or f'status {answer.status_code}'}"[:LONGEST_REASON])
