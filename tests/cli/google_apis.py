"""A loopback server that answers as Google's REST APIs do for a project that is set up completely."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from firestore_outbox.operations.doctor_calls import FUNCTIONS
from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
PROJECT = "chat-project"
DATABASE = f"projects/{PROJECT}/databases/(default)"
HERE = f"projects/{PROJECT}/locations/us-central1"
WORKER_URL = "https://outbox-worker-123456789012.us-central1.run.app"
QUEUES = ("outbox-lanes", "outbox-lanes-1", "outbox-receipts")
_WORKER_VARIABLES = [
    {"name": "OUTBOX_QUEUES", "value": "2"},
    {"name": "OUTBOX_WORKER_URL", "value": WORKER_URL},
    {"name": "PYTHONUNBUFFERED", "value": "1"},
    {"name": "OUTBOX_RECEIPT_QUEUE", "value": "outbox-receipts"},
    {"name": "OUTBOX_EVENT_SECRET_ORDERS", "valueSource": {"secretKeyRef": {"secret": "outbox-setting-orders"}}},
]
"""As deploy/worker.sh sets them with LANE_QUEUES=2. This terminal does not have them."""
PAGE = 5
"""Items of a list in one answer."""


def a_complete_project() -> dict[str, Any]:
    """Path below the server -> what the API answers there. A test changes it to break something."""
    wanted = json.loads((ROOT / "firestore.indexes.json").read_text(encoding="utf-8"))
    names = ("worker", "functions", "console", "tasks", "events", "deploy")
    emails = [f"outbox-{name}@{PROJECT}.iam.gserviceaccount.com" for name in names]
    ttl = [one for one in wanted["fieldOverrides"] if one.get("ttl")]
    return {
        f"/firestore/v1/{DATABASE}": {"name": DATABASE, "type": "FIRESTORE_NATIVE", "locationId": "us-central1"},
        f"/firestore/v1/{DATABASE}/collectionGroups/-/indexes": {
            "indexes": [
                {
                    "name": f"{DATABASE}/collectionGroups/{one['collectionGroup']}/indexes/{number}",
                    "queryScope": one["queryScope"],
                    "fields": [*one["fields"], {"fieldPath": "__name__", "order": one["fields"][-1]["order"]}],
                    "state": "READY",
                }
                for number, one in enumerate(wanted["indexes"])
            ]
        },
        f"/firestore/v1/{DATABASE}/collectionGroups/-/fields": {
            "fields": [
                {
                    "name": f"{DATABASE}/collectionGroups/{one['collectionGroup']}/fields/{one['fieldPath']}",
                    "indexConfig": {},
                    "ttlConfig": {"state": "ACTIVE"},
                }
                for one in ttl
            ]
        },
        f"/firestore/v1/{DATABASE}/documents/accounts": {
            "documents": [{"name": f"{DATABASE}/documents/accounts/shop", "fields": {}}]
        },
        f"/firebaserules/v1/projects/{PROJECT}/releases/cloud.firestore": {
            "name": f"projects/{PROJECT}/releases/cloud.firestore",
            "rulesetName": f"projects/{PROJECT}/rulesets/aaaa-bbbb",
        },
        f"/firebaserules/v1/projects/{PROJECT}/rulesets/aaaa-bbbb": {
            "name": f"projects/{PROJECT}/rulesets/aaaa-bbbb",
            "source": {"files": [{"name": "firestore.rules", "content": (ROOT / "firestore.rules").read_text()}]},
        },
        **{f"/cloudtasks/v2/{HERE}/queues/{queue}": _queue(queue) for queue in QUEUES},
        f"/cloudfunctions/v2/{HERE}/functions": {
            "functions": [_function(name, entry, FUNCTIONS[entry].documents) for name, entry in deployed_functions()]
        },
        f"/cloudscheduler/v1/{HERE}/jobs/outbox-sweep": {
            "name": f"{HERE}/jobs/outbox-sweep",
            "state": "ENABLED",
            "schedule": "* * * * *",
            "status": {},
            "httpTarget": {"uri": f"{WORKER_URL}/tasks/sweep", "oidcToken": {"audience": WORKER_URL}},
        },
        f"/run/v2/{HERE}/services/outbox-worker": {
            "name": f"{HERE}/services/outbox-worker",
            "terminalCondition": {"type": "Ready", "state": "CONDITION_SUCCEEDED"},
            "template": {"containers": [{"image": "worker", "env": _WORKER_VARIABLES}]},
        },
        **{f"/iam/v1/projects/{PROJECT}/serviceAccounts/{email}": {"email": email} for email in emails},
        f"/secretmanager/v1/projects/{PROJECT}/secrets": {
            "secrets": [{"name": "projects/123456789012/secrets/outbox-account-shop"}]
        },
    }


def deployed_functions() -> list[tuple[str, str]]:
    """What deploy/functions.sh makes: name and entry point. Without the sweep, which is the scheduler's check."""
    script = (ROOT / "deploy/functions.sh").read_text(encoding="utf-8")
    on_created = re.findall(r"^ *(?:\w+\) )?on_created (\S+) (\S+) '", script, re.M)
    by_http = re.findall(r"functions deploy (outbox-\w+) .*--entry-point=(\w+)", script)
    same = [(f"outbox-{name}", name) for name in ("accounts", "reminders", "runs")]
    return [one for one in (*on_created, *by_http, *same) if one[1] != "sweep"]


def _queue(queue: str) -> dict[str, Any]:
    retry = {"maxAttempts": 20, "minBackoff": "1s", "maxBackoff": "60s", "maxDoublings": 6}
    return {"name": f"{HERE}/queues/{queue}", "state": "RUNNING", "retryConfig": retry}


def _function(name: str, entry: str, documents: str) -> dict[str, Any]:
    function = {"name": f"{HERE}/functions/{name}", "state": "ACTIVE", "buildConfig": {"entryPoint": entry}}
    if not documents:
        return function
    filters = [
        {"attribute": "database", "value": "(default)"},
        {"attribute": "document", "value": documents, "operator": "match-path-pattern"},
    ]
    created = "google.cloud.firestore.document.v1.created"
    return {
        **function,
        "eventTrigger": {"eventType": created, "eventFilters": filters, "retryPolicy": "RETRY_POLICY_RETRY"},
    }


@contextmanager
def google_apis(answers: dict[str, Any]) -> Iterator[str]:
    """HOST:PORT of the server. Lists come in pages; `{"error": ...}` is answered with the status it names."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            split = urlsplit(self.path)
            parameters = {name: values[0] for name, values in parse_qs(split.query).items()}
            absent = {"error": {"code": 404, "message": "Requested entity was not found.", "status": "NOT_FOUND"}}
            answer = answers.get(unquote(split.path), absent)
            status = answer["error"]["code"] if "error" in answer else 200
            content = json.dumps(_page(answer, int(parameters.get("pageToken", "0")))).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join(PATIENCE_SECONDS)


def _page(answer: dict[str, Any], start: int) -> dict[str, Any]:
    for name in ("indexes", "fields", "secrets", "documents", "functions"):
        if isinstance(answer.get(name), list):
            more = {"nextPageToken": str(start + PAGE)} if len(answer[name]) > start + PAGE else {}
            return {name: answer[name][start : start + PAGE], **more}
    return answer
