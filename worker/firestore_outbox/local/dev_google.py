"""What Google Cloud does around the processes of a stack: it triggers functions, and its scheduler calls the sweep."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

import grpc
import httpx
from google.api_core.exceptions import GoogleAPICallError
from google.cloud import tasks_v2
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcAsyncIOTransport

from firestore_outbox.local.functions_host import TRIGGERS


def trigger_on(documents: str) -> dict[str, object]:
    """Of created documents whose path has this pattern."""
    return {
        "eventType": "google.cloud.firestore.document.v1.created",
        "database": "(default)",
        "namespace": "(default)",
        "document": {"value": documents, "matchType": "PATH_PATTERN"},
    }


async def register_triggers(firestore: str, project: str) -> None:
    """Tell the emulator which functions get which documents' events."""
    url = f"http://{firestore}/emulator/v1/projects/{project}/eventarcTrigger"
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        for name, documents in TRIGGERS.items():
            trigger = trigger_on(documents)
            (await client.post(url, params={"eventarcTriggerId": name}, json=trigger)).raise_for_status()


async def call_sweep(tasks: str, queue: str, environment: Mapping[str, str], *, every_seconds: float) -> None:
    """Cloud Scheduler's part: a call of the sweep, each minute, until cancelled."""
    channel = grpc.aio.insecure_channel(tasks)
    client = tasks_v2.CloudTasksAsyncClient(transport=CloudTasksGrpcAsyncIOTransport(channel=channel))
    worker = environment["OUTBOX_WORKER_URL"]  # the settings may name another: a balancer before several
    account = environment["OUTBOX_SERVICE_ACCOUNT"]
    token = tasks_v2.OidcToken(service_account_email=account, audience=worker)
    request = tasks_v2.HttpRequest(url=f"{worker}/tasks/sweep", body=b"{}", oidc_token=token)
    while True:
        await asyncio.sleep(every_seconds)
        with contextlib.suppress(GoogleAPICallError):  # down for a moment: the next minute comes
            await client.create_task(parent=queue, task=tasks_v2.Task(http_request=request))
