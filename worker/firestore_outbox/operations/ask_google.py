"""The facts for `outbox doctor`, asked from Google's REST APIs with the credentials at hand. It changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from firestore_outbox.operations.doctor import SECRET_PREFIX, SERVICE_ACCOUNTS
from firestore_outbox.operations.doctor_facts import WORKER, Absent, Answer, Fact, Facts, Refused, settings_of

CALL_SECONDS = 30.0
"""The longest that one call may take."""
DEFAULT_DATABASE = "(default)"
MOST_PAGES = 50
LONGEST_REASON = 300
QueuesOf = Callable[[Mapping[str, str]], Sequence[str]]


@dataclass(frozen=True, slots=True)
class AskGoogle:
    http: httpx.AsyncClient
    token: str
    """An OAuth access token; empty for an emulator."""
    emulator: str = ""
    """HOST:PORT of a server that answers for all APIs, each below its name; empty means Google's."""

    async def facts(self, *, project: str, location: str, queues: QueuesOf, worker_url: str, database_id: str) -> Facts:
        """`queues` names the queues, given the deployed worker's variables."""
        database = f"v1/projects/{project}/databases/{database_id}"
        here = f"projects/{project}/locations/{location}"
        emails = {name: f"{name}@{project}.iam.gserviceaccount.com" for name in SERVICE_ACCOUNTS}
        worker = await self.worker(project, location)
        queue_ids = queues(settings_of(worker))
        answers = await asyncio.gather(
            self._get("firestore", database),
            self._all("firestore", f"{database}/collectionGroups/-/indexes", "indexes"),
            self._all("firestore", f"{database}/collectionGroups/-/fields", "fields", filter="ttlConfig:*"),
            self._ruleset(project, database_id),
            self._all("cloudfunctions", f"v2/{here}/functions", "functions"),
            self._get("cloudscheduler", f"v1/{here}/jobs/outbox-sweep"),
            self._all("secretmanager", f"v1/projects/{project}/secrets", "secrets", filter=f"name:{SECRET_PREFIX}"),
            self._all("firestore", f"{database}/documents/accounts", "documents", **{"mask.fieldPaths": "provider"}),
            *(self._get("cloudtasks", f"v2/{here}/queues/{queue}") for queue in queue_ids),
            *(self._get("iam", f"v1/projects/{project}/serviceAccounts/{email}") for email in emails.values()),
        )
        return Facts(
            project=project,
            location=location,
            worker_url=worker_url,
            database_id=database_id,
            database=answers[0],
            indexes=answers[1],
            ttl=answers[2],
            rules=answers[3],
            functions=answers[4],
            job=answers[5],
            worker=worker,
            secrets=answers[6],
            accounts=answers[7],
            queues=dict(zip(queue_ids, answers[8:], strict=False)),
            service_accounts=dict(zip(emails, answers[8 + len(queue_ids) :], strict=True)),
        )

    async def worker(self, project: str, location: str) -> Fact:
        """The Cloud Run service."""
        return await self._get("run", f"v2/projects/{project}/locations/{location}/services/{WORKER}")

    async def _ruleset(self, project: str, database_id: str) -> Fact:
        name = "cloud.firestore" if database_id == DEFAULT_DATABASE else f"cloud.firestore/{database_id}"
        release = await self._get("firebaserules", f"v1/projects/{project}/releases/{name}")
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
