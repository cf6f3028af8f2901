"""`outbox doctor` against a server that answers as Google's APIs do: each fault is named, with its fix."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from google.cloud import firestore_admin_v1, tasks_v2

from firestore_outbox.local.functions_host import TRIGGERS
from firestore_outbox.operations.doctor_calls import FUNCTIONS
from tests.cli.google_apis import (
    DATABASE,
    HERE,
    PROJECT,
    ROOT,
    WORKER_URL,
    a_complete_project,
    deployed_functions,
    google_apis,
)
from tests.cli.support import Said, outbox

INDEXES = f"/firestore/v1/{DATABASE}/collectionGroups/-/indexes"
FIELDS = f"/firestore/v1/{DATABASE}/collectionGroups/-/fields"
QUEUE = f"/cloudtasks/v2/{HERE}/queues/outbox-lanes"
RECEIPTS = f"/cloudtasks/v2/{HERE}/queues/outbox-receipts"
SECOND_QUEUE = f"/cloudtasks/v2/{HERE}/queues/outbox-lanes-1"
FUNCTIONS_PATH = f"/cloudfunctions/v2/{HERE}/functions"
JOB = f"/cloudscheduler/v1/{HERE}/jobs/outbox-sweep"
RELEASE = f"/firebaserules/v1/projects/{PROJECT}/releases/cloud.firestore"
RULESET = f"/firebaserules/v1/projects/{PROJECT}/rulesets/aaaa-bbbb"
WORKER = f"/run/v2/{HERE}/services/outbox-worker"
SECRETS = f"/secretmanager/v1/projects/{PROJECT}/secrets"
TASKS_ACCOUNT = f"/iam/v1/projects/{PROJECT}/serviceAccounts/outbox-tasks@{PROJECT}.iam.gserviceaccount.com"
FORBIDDEN = {"error": {"code": 403, "message": "The caller does not have permission", "status": "PERMISSION_DENIED"}}


def examined(answers: dict[str, Any], *options: str) -> Said:
    with google_apis(answers) as address:
        environment: dict[str, str | None] = {
            "OUTBOX_DOCTOR_EMULATOR_HOST": address,
            "OUTBOX_PROJECT": PROJECT,
            "OUTBOX_WORKER_URL": WORKER_URL,
        }
        return outbox("doctor", *options, env=environment)


def test_a_complete_project_is_in_order() -> None:
    said = examined(a_complete_project())
    assert said.code == 0, said
    lines = said.out.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["ok"] * 10
    assert lines[-1] == "everything that could be checked is in order"


def changed(path: str, **fields: Any) -> dict[str, Any]:
    answers = a_complete_project()
    answers[path] = {**answers[path], **fields}
    return answers


def without(path: str) -> dict[str, Any]:
    answers = a_complete_project()
    del answers[path]
    return answers


def with_function(name: str, **fields: Any) -> dict[str, Any]:
    """`state=None` takes it away."""
    answers = a_complete_project()
    functions = answers[FUNCTIONS_PATH]["functions"]
    (one,) = [function for function in functions if function["name"].endswith(f"/{name}")]
    one.update(fields)
    answers[FUNCTIONS_PATH] = {"functions": [function for function in functions if function["state"] is not None]}
    return answers


def with_setting(answers: dict[str, Any], name: str, value: str) -> dict[str, Any]:
    """Of the deployed worker."""
    (container,) = answers[WORKER]["template"]["containers"]
    changed_container = {**container, "env": [*container["env"], {"name": name, "value": value}]}
    return {**answers, WORKER: {**answers[WORKER], "template": {"containers": [changed_container]}}}


def with_index(**fields: Any) -> dict[str, Any]:
    answers = a_complete_project()
    answers[INDEXES]["indexes"][-1].update(fields)
    return answers


@pytest.mark.parametrize(
    ("answers", "name", "verdict", "words", "fix"),
    [
        (without(f"/firestore/v1/{DATABASE}"), "database", "broken", "no database", "deploy/project.sh"),
        (with_index(state="CREATING"), "indexes", "wait", "1 of", "run outbox doctor again"),
        (with_index(state="NEEDS_REPAIR"), "indexes", "broken", "Could not be built", "deploy/firestore.sh"),
        (with_index(queryScope="COLLECTION_GROUP"), "indexes", "broken", "Missing: runs(", "deploy/firestore.sh"),
        (changed(FIELDS, fields=[]), "ttl", "broken", "No TTL policy on outbox.expireAt", "deploy/firestore.sh"),
        (
            without(f"/firebaserules/v1/projects/{PROJECT}/releases/cloud.firestore"),
            "rules",
            "broken",
            "No security",
            "f",
        ),
        (changed(RULESET, source={"files": [{"content": "old"}]}), "rules", "warning", "differ", "deploy/firestore.sh"),
        (without(QUEUE), "queue", "broken", "no queue outbox-lanes in us-central1", "deploy/queue.sh"),
        (changed(QUEUE, state="PAUSED"), "queue", "broken", "is PAUSED", "gcloud tasks queues resume outbox-lanes"),
        (changed(QUEUE, retryConfig={"maxBackoff": "3600s"}), "queue", "warning", "3600 s", "deploy/queue.sh"),
        (without(RECEIPTS), "queue", "broken", "no queue outbox-receipts in us-central1", "deploy/queue.sh"),
        (changed(SECOND_QUEUE, state="DISABLED"), "queue", "broken", "outbox-lanes-1 is DISABLED", "outbox-lanes-1 --"),
        ({**a_complete_project(), FUNCTIONS_PATH: FORBIDDEN}, "functions", "unknown", "permission", "gcloud auth"),
        (
            with_function("outbox-on-cancel", state=None),
            "functions",
            "broken",
            "no function outbox-on-cancel: a cancelled message waits",
            "deploy/functions.sh on_cancel_created",
        ),
        (
            with_function("outbox-webhook", state="FAILED", stateMessages=[{"message": "Build failed"}]),
            "functions",
            "broken",
            "outbox-webhook is FAILED (Build failed): receipts and replies do not arrive",
            "deploy/functions.sh provider_webhook",
        ),
        (with_function("outbox-runs", state="DEPLOYING"), "functions", "wait", "being deployed", "doctor again"),
        (
            with_function("outbox-on-request", eventTrigger={"eventFilters": [], "retryPolicy": "RETRY_POLICY_RETRY"}),
            "functions",
            "broken",
            "outbox-on-request listens to nothing, not to {collection}/{id}/requests/{requestId} of (default)",
            "gcloud functions delete outbox-on-request; deploy/functions.sh on_request_created",
        ),
        (
            with_setting(with_function("outbox-events", state=None), "OUTBOX_EVENTS", "events.json"),
            "functions",
            "broken",
            "POST /v1/events is not answered",
            "deploy/functions.sh events",
        ),
        (
            with_setting(with_function("outbox-open", state=None), "OUTBOX_KMS_KEY", "projects/p"),
            "functions",
            "broken",
            "apps cannot open sealed messages",
            "deploy/functions.sh open_messages",
        ),
        (
            with_setting(with_function("outbox-billing", state=None), "OUTBOX_BILLING_PRICES", "pro=price_1"),
            "functions",
            "broken",
            "what owners pay changes no plan",
            "deploy/functions.sh billing_webhook",
        ),
        (without(JOB), "scheduler", "broken", "no job outbox-sweep", "deploy/schedule.sh"),
        (changed(JOB, state="PAUSED"), "scheduler", "broken", "is PAUSED", "gcloud scheduler jobs resume outbox-sweep"),
        (changed(JOB, status={"code": 13}), "scheduler", "warning", "failed (code 13", "gcloud logging read"),
        (changed(JOB, httpTarget={}), "scheduler", "broken", "the worker refuses it", "deploy/schedule.sh"),
        (without(WORKER), "worker", "broken", "no service outbox-worker", "deploy/worker.sh IMAGE"),
        (
            changed(WORKER, terminalCondition={"message": "no image"}),
            "worker",
            "broken",
            "no image",
            "deploy/worker.sh",
        ),
        (without(TASKS_ACCOUNT), "service accounts", "broken", "Missing: outbox-tasks", "deploy/project.sh"),
        (changed(TASKS_ACCOUNT, disabled=True), "service accounts", "broken", "is disabled", "service-accounts enable"),
        (changed(SECRETS, secrets=[]), "secrets", "broken", "shop has no secret", "outbox accounts add shop --replace"),
        ({**a_complete_project(), SECRETS: FORBIDDEN}, "secrets", "unknown", "permission", "gcloud auth application"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_fault_is_named_with_the_command_that_ends_it(
    answers: dict[str, Any], name: str, verdict: str, words: str, fix: str
) -> None:
    said = examined(answers, "--json")
    assert said.code == (1 if verdict == "broken" else 0), said
    (check,) = [check for check in said.json if check["verdict"] != "ok"]
    assert (check["name"], check["verdict"]) == (name, verdict)
    assert words in check["sentence"]
    assert fix in check["fix"]


@pytest.mark.parametrize("name", ["outbox-on-created", "outbox-on-reminder"])
def test_a_trigger_that_does_not_retry_is_a_warning(name: str) -> None:
    answers = a_complete_project()
    (one,) = [one for one in answers[FUNCTIONS_PATH]["functions"] if one["name"].endswith(f"/{name}")]
    one["eventTrigger"]["retryPolicy"] = "RETRY_POLICY_DO_NOT_RETRY"
    said = examined(answers, "--json")
    (check,) = [check for check in said.json if check["verdict"] != "ok"]
    assert (said.code, check["verdict"]) == (0, "warning")
    assert f"{name} does not retry" in check["sentence"]


@pytest.mark.parametrize("name", ["outbox-events", "outbox-on-event", "outbox-open"])
def test_a_function_of_a_feature_that_is_not_used_is_not_missed(name: str) -> None:
    assert examined(with_function(name, state=None)).code == 0


def test_it_knows_every_function_that_the_deployment_makes() -> None:
    script = (ROOT / "deploy/functions.sh").read_text(encoding="utf-8")
    assert {entry: one.name for entry, one in FUNCTIONS.items()} == {
        entry: name for name, entry in deployed_functions()
    }
    on_documents = {entry: one.documents for entry, one in FUNCTIONS.items() if one.documents}
    assert on_documents == TRIGGERS
    assert [entry for entry, documents in on_documents.items() if f"{entry} '{documents}'" not in script] == []
    default = script.partition("set -- ")[2].partition("\nfor")[0].replace("\\", "").split()
    assert set(default) == {entry for entry, one in FUNCTIONS.items() if not one.needed_by}


def test_a_person_reads_the_fix_below_what_is_wrong() -> None:
    lines = examined(without(QUEUE)).out.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.startswith("FAIL")]
    assert lines[at + 1].split() == ["->", "deploy/queue.sh"]
    assert lines[-1] == "1 to fix, from top to bottom"


def test_the_deployed_workers_settings_become_export_lines_without_its_secrets() -> None:
    said = examined(a_complete_project(), "--export")
    assert said.code == 0, said
    assert said.out.splitlines() == [
        f"export OUTBOX_PROJECT={PROJECT}",
        "export OUTBOX_QUEUES=2",
        "export OUTBOX_RECEIPT_QUEUE=outbox-receipts",
        f"export OUTBOX_WORKER_URL={WORKER_URL}",
    ]
    assert json.loads(examined(a_complete_project(), "--export", "--json").out)["OUTBOX_WORKER_URL"] == WORKER_URL


def test_a_shell_takes_an_exported_setting_as_it_is() -> None:
    answers = a_complete_project()
    odd = """a b'c"$HOME;`id`"""
    answers[WORKER]["template"]["containers"][0]["env"] = [{"name": "OUTBOX_WORDS", "value": odd}]
    said = examined(answers, "--export")
    shell = subprocess.run(
        ["sh", "-c", 'eval "$1"; printf %s "$OUTBOX_WORDS"', "sh", said.out], capture_output=True, text=True, check=True
    )
    assert shell.stdout == odd


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        (without(WORKER), "there is no service outbox-worker in us-central1"),
        (a_complete_project() | {WORKER: FORBIDDEN}, "could not be read: run: The caller does not have permission"),
    ],
    ids=["no worker", "no permission"],
)
def test_settings_that_cannot_be_read_are_a_sentence_and_nothing_is_exported(
    answers: dict[str, Any], sentence: str
) -> None:
    said = examined(answers, "--export")
    assert (said.code, said.out) == (1, "")
    assert sentence in said.err


@pytest.mark.parametrize("command", [["resume", "shop"], ["redrive", "request-1"], ["accounts", "add", "shop"]])
def test_a_command_that_does_not_know_the_projects_worker_changes_nothing_and_says_how_to_go_on(
    command: list[str],
) -> None:
    variables: dict[str, str | None] = dict.fromkeys(("FIRESTORE_EMULATOR_HOST", "OUTBOX_WORKER_URL"))
    said = outbox(*command, env={**variables, "OUTBOX_PROJECT": PROJECT})
    assert (said.code, said.out) == (1, "")
    assert f'eval "$(outbox doctor --project {PROJECT} --export)"' in said.err


def test_without_credentials_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/no/such/file")
    said = outbox("doctor", "--project", PROJECT)
    assert (said.code, said.out) == (1, "")
    assert "gcloud auth application-default login" in said.err
    assert outbox("doctor", env={"OUTBOX_PROJECT": None}).code == 2


def test_the_servers_answers_have_the_form_of_googles_own() -> None:
    """Google's message types refuse a field or a state that they do not know."""
    answers = a_complete_project()
    for index in answers[INDEXES]["indexes"]:
        firestore_admin_v1.Index.from_json(json.dumps(index))
    for field in answers[FIELDS]["fields"]:
        firestore_admin_v1.Field.from_json(json.dumps(field))
    firestore_admin_v1.types.Database.from_json(json.dumps(answers[f"/firestore/v1/{DATABASE}"]))
    tasks_v2.Queue.from_json(json.dumps(answers[QUEUE]))
