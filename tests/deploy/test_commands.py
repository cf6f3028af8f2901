"""What the scripts of deploy/ do to a project: that gcloud understands each command, and that they mean what the
architecture says: who may call what, who may do what, and that nothing that was sent is lost.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

import functions.main
from firestore_outbox.lane.tasks import DISPATCH_DEADLINE
from firestore_outbox.local.functions_host import OUTBOX_TRIGGER
from firestore_outbox.settings import PREFIX, Settings
from tests.deploy.support import NUMBER, PROJECT, ROOT, Command, ask_gcloud, everything, one, run

WORKER_URL = f"https://outbox-worker-{NUMBER}.us-central1.run.app"
FUNCTIONS = tuple(functions.main.__all__)


def account(name: str) -> str:
    return f"outbox-{name}@{PROJECT}.iam.gserviceaccount.com"


@pytest.fixture(scope="module")
def first_time(tmp_path_factory: pytest.TempPathFactory) -> list[Command]:
    """All commands, in a project where there is nothing yet."""
    return everything(tmp_path_factory.mktemp("first"), exists=False)


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> list[Command]:
    return everything(tmp_path_factory.mktemp("again"), exists=True)


# --- gcloud understands them


def test_gcloud_itself_understands_every_command(first_time: list[Command], again: list[Command]) -> None:
    """Its parser, with all that it checks before it asks anybody: commands, flags, values, what excludes what."""
    commands = sorted({command.arguments for command in (*first_time, *again) if command.program == "gcloud"})
    answers, complaints = ask_gcloud({"commands": [list(command) for command in commands]})
    assert all(answers["understood"]), complaints
    assert len(commands) > 40


def test_gcloud_would_say_so_if_it_did_not() -> None:
    wrong = [
        ["run", "deploy", "outbox-worker", "--no-such-flag"],
        ["tasks", "queues", "create", "q", "--max-attempts=x"],
    ]
    answers, complaints = ask_gcloud({"commands": wrong})
    assert answers["understood"] == [False, False]
    assert "--no-such-flag" in complaints


def test_a_second_run_makes_nothing_twice(again: list[Command]) -> None:
    assert [str(command) for command in again if "create" in command.words] == []


def test_every_script_needs_a_project_and_says_so(tmp_path: Path) -> None:
    for script in sorted(ROOT.glob("deploy/*.sh")):
        if script.name == "gate.sh":
            continue  # runs the tests, and touches no project
        with pytest.raises(AssertionError, match="set PROJECT_ID to the id of the Google Cloud project"):
            run(script.name, where=tmp_path, exists=True, PROJECT_ID="")


# --- settings


def literals_of_the_worker() -> set[str]:
    """Every string in the worker's source."""
    found: set[str] = set()
    for file in (ROOT / "worker").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def deployed(commands: list[Command]) -> list[Command]:
    return [command for command in commands if command.words[:2] in (("run", "deploy"), ("functions", "deploy"))]


def test_every_setting_that_is_deployed_is_one_that_the_program_reads(first_time: list[Command]) -> None:
    literals = literals_of_the_worker()
    for command in deployed(first_time):
        names = command.pairs("--set-env-vars").keys() - {"PYTHONPATH"}
        unknown = {name for name in names if name.removeprefix(PREFIX).lower() not in Settings.model_fields}
        assert unknown <= literals, f"{command.words}: nobody reads {unknown - literals}"


def test_the_settings_that_are_deployed_are_valid_and_name_what_was_made(first_time: list[Command]) -> None:
    for command in deployed(first_time):
        settings = Settings.from_environment(command.pairs("--set-env-vars"))
        queue = one(first_time, "tasks", "queues", "create")
        assert settings.queue_name == (
            f"projects/{PROJECT}/locations/{queue.value('--location')}/queues/{queue.words[-1]}"
        )
        assert settings.worker_url == WORKER_URL
        assert settings.service_account == account("tasks")
        assert settings.tasks_emulator_host == ""
        bucket = one(first_time, "storage", "buckets", "create")
        assert bucket.words[-1] == f"gs://{settings.media_bucket}"


def test_no_emulator_is_ever_deployed(first_time: list[Command]) -> None:
    for command in first_time:
        assert "EMULATOR" not in str(command)


def test_somebodys_own_settings_are_added(tmp_path: Path) -> None:
    extra = "OUTBOX_GLOBAL_PER_SECOND=80,OUTBOX_LANE_CONCURRENCY=16"
    (worker,) = run("worker.sh", "an-image", where=tmp_path, exists=True, PROJECT_NUMBER=NUMBER, EXTRA_SETTINGS=extra)
    settings = Settings.from_environment(worker.pairs("--set-env-vars"))
    assert (settings.global_per_second, settings.lane_concurrency) == (80, 16)


# --- the functions


def function(commands: list[Command], entry_point: str) -> Command:
    (found,) = (
        command
        for command in commands
        if command.words[:2] == ("functions", "deploy") and command.value("--entry-point") == entry_point
    )
    return found


def test_every_function_is_deployed_from_a_file_that_has_it(first_time: list[Command]) -> None:
    assert OUTBOX_TRIGGER in FUNCTIONS
    for name in FUNCTIONS:
        command = function(first_time, name)
        source = command.pairs("--set-build-env-vars")["GOOGLE_FUNCTION_SOURCE"]
        assert (ROOT / command.value("--source") / source).resolve() == Path(functions.main.__file__).resolve()
        assert callable(getattr(functions.main, name))
        assert (ROOT / command.value("--ignore-file")).is_file()
        assert command.has("--gen2")
        assert command.value("--runtime") == "python311"


def test_the_sweep_is_a_function_only_where_it_is_asked_for(tmp_path: Path) -> None:
    usual = run("functions.sh", where=tmp_path, exists=True)
    deployed = [command.value("--entry-point") for command in usual if command.words[:2] == ("functions", "deploy")]
    assert deployed == ["on_outbox_created", "provider_webhook", "enqueue", "reminders", "runs"]


def test_new_outbox_documents_become_events_that_are_tried_again(first_time: list[Command]) -> None:
    command = function(first_time, "on_outbox_created")
    assert command.values("--trigger-event-filters") == [
        "type=google.cloud.firestore.document.v1.created",
        "database=(default)",
    ]
    assert command.value("--trigger-event-filters-path-pattern") == "document=outbox/{requestId}"
    assert command.has("--retry"), "an event that fails would be gone"
    database = one(first_time, "firestore", "databases", "create")
    assert command.value("--trigger-location") == database.value("--location"), "a trigger lives with its database"


def test_a_database_in_a_multi_region_has_its_trigger_there(tmp_path: Path) -> None:
    commands = run("functions.sh", "on_outbox_created", where=tmp_path, exists=True, FIRESTORE_LOCATION="nam5")
    command = function(commands, "on_outbox_created")
    assert (command.value("--trigger-location"), command.value("--region")) == ("nam5", "us-central1")


# --- who may call what


@pytest.mark.parametrize("name", ["on_outbox_created", "on_event_created"])
def test_events_are_taken_from_eventarc_alone(first_time: list[Command], name: str) -> None:
    """The platform checks them; the function itself does not."""
    command = function(first_time, name)
    assert command.has("--no-allow-unauthenticated")
    assert command.value("--ingress-settings") == "internal-only"
    assert command.value("--trigger-service-account") == account("events")
    binding = one(first_time, "functions", "add-invoker-policy-binding", command.words[-1])
    assert binding.value("--member") == f"serviceAccount:{account('events')}"


def test_a_push_is_deployed_as_the_deploy_account_with_the_projects_region(first_time: list[Command]) -> None:
    trigger = one(first_time, "builds", "triggers", "create", "github")
    assert trigger.value("--branch-pattern") == "^main$"
    assert trigger.value("--service-account") == f"projects/{PROJECT}/serviceAccounts/{account('deploy')}"
    assert trigger.pairs("--substitutions") == {"_REGION": "us-central1", "_FIRESTORE_LOCATION": "us-central1"}
    assert (ROOT / trigger.value("--build-config")).is_file()


def test_the_worker_is_out_of_reach_from_outside_and_sees_tokens_with_their_signature(
    first_time: list[Command],
) -> None:
    worker = one(first_time, "run", "deploy")
    assert worker.value("--ingress") == "internal"
    assert worker.has("--no-invoker-iam-check"), "Cloud Run's own check removes the signature that the worker checks"
    sweep = function(first_time, "sweep")
    assert sweep.value("--ingress-settings") == "internal-only"
    assert sweep.has("--allow-unauthenticated")


@pytest.mark.parametrize("name", ["provider_webhook", "enqueue", "reminders", "runs"])
def test_what_providers_and_apps_call_is_open_and_checks_by_itself(first_time: list[Command], name: str) -> None:
    command = function(first_time, name)
    assert command.has("--allow-unauthenticated")
    assert not command.has("--ingress-settings")


# --- who may do what

ROLES = {
    "worker": {"datastore.user", "secretmanager.secretAccessor"},
    "functions": {"datastore.user", "secretmanager.secretAccessor"},
    "events": {"eventarc.eventReceiver"},
    "deploy": {
        "cloudbuild.builds.builder",
        "cloudfunctions.developer",
        "cloudscheduler.admin",
        "cloudtasks.queueAdmin",
        "datastore.indexAdmin",
        "firebaserules.admin",
        "run.admin",
        "serviceusage.serviceUsageConsumer",
    },
}
"""In the whole project. The account of tasks and of the scheduler is not there."""

ACTS_AS = {
    ("worker", "tasks"),
    ("functions", "tasks"),
    *(("deploy", other) for other in ("worker", "functions", "tasks", "events", "deploy")),
}


def named(member: str) -> str:
    found = re.fullmatch(rf"serviceAccount:outbox-(\w+)@{PROJECT}\.iam\.gserviceaccount\.com", member)
    assert found, f"a right for somebody else: {member}"
    return found[1]


def test_each_account_has_these_rights_and_no_others(first_time: list[Command]) -> None:
    found: dict[str, set[str]] = {}
    for command in first_time:
        if command.words[:2] == ("projects", "add-iam-policy-binding"):
            found.setdefault(named(command.value("--member")), set()).add(
                command.value("--role").removeprefix("roles/")
            )
    assert found == ROLES


def test_secrets_are_those_of_accounts_alone(first_time: list[Command]) -> None:
    from firestore_outbox.providers.secret_manager import PREFIX as SECRETS

    bound = [c for c in first_time if c.values("--role") == ["roles/secretmanager.secretAccessor"]]
    expression = f'resource.name.startsWith("projects/{NUMBER}/secrets/{SECRETS}")'
    assert [c.value("--condition") for c in bound] == [f"title=outbox-secrets,expression={expression}"] * 2


def test_rights_on_one_thing_are_given_on_that_thing_alone(first_time: list[Command]) -> None:
    queue = [c for c in first_time if c.words[:3] == ("tasks", "queues", "add-iam-policy-binding")]
    assert {(named(c.value("--member")), c.value("--role")) for c in queue} == {
        ("worker", "roles/cloudtasks.enqueuer"),
        ("functions", "roles/cloudtasks.enqueuer"),
    }
    bucket = [c for c in first_time if c.words[:3] == ("storage", "buckets", "add-iam-policy-binding")]
    assert {c.value("--role") for c in bucket} == {"roles/storage.objectViewer", "roles/storage.objectCreator"}


def test_nobody_acts_as_another_but_to_hand_on_its_name(first_time: list[Command]) -> None:
    found = set()
    for command in first_time:
        if command.words[:3] == ("iam", "service-accounts", "add-iam-policy-binding"):
            pair = named(command.value("--member")), named(f"serviceAccount:{command.words[-1]}")
            if command.value("--role") == "roles/iam.serviceAccountUser":
                found.add(pair)
            else:
                assert (pair, command.value("--role")) == (("worker", "worker"), "roles/iam.serviceAccountTokenCreator")
    assert found == ACTS_AS


def test_every_account_that_is_used_is_made(first_time: list[Command]) -> None:
    made = {c.words[-1] for c in first_time if c.words[:3] == ("iam", "service-accounts", "create")}
    used = set(re.findall(rf"(outbox-\w+)@{PROJECT}", " ".join(map(str, first_time))))
    assert used == made


def test_nothing_runs_as_the_projects_default_account(first_time: list[Command]) -> None:
    for command in deployed(first_time):
        kind = "worker" if command.words[0] == "run" else "functions"
        assert command.value("--service-account") == account(kind)
        if kind == "functions":
            assert command.value("--build-service-account").endswith(account("deploy"))


# --- the queue and the clock


def test_the_queue_tries_again_soon_often_and_long_enough(first_time: list[Command]) -> None:
    queue = one(first_time, "tasks", "queues", "update")
    assert queue.value("--min-backoff") == "1s"
    assert queue.value("--max-backoff") == "60s", "the default of an hour would keep a lane asleep for an hour"
    assert int(queue.value("--max-attempts")) >= 10
    assert queue.value("--max-retry-duration") == "3600s"


def test_no_more_tasks_are_under_way_than_the_worker_takes(first_time: list[Command]) -> None:
    queue, worker = one(first_time, "tasks", "queues", "update"), one(first_time, "run", "deploy")
    room = int(worker.value("--max-instances")) * int(worker.value("--concurrency"))
    assert int(queue.value("--max-concurrent-dispatches")) == room <= 5_000


def test_a_run_of_a_lane_ends_before_its_request_does(first_time: list[Command]) -> None:
    timeout = int(one(first_time, "run", "deploy").value("--timeout"))
    assert Settings().longest_hold_seconds < timeout
    assert timeout == DISPATCH_DEADLINE.total_seconds()


@pytest.mark.parametrize("is_there", [False, True])
def test_the_worker_is_asked_to_sweep_each_minute(tmp_path: Path, is_there: bool) -> None:
    commands = run("schedule.sh", where=tmp_path, exists=is_there)
    job = one(commands, "scheduler", "jobs", "update" if is_there else "create", "http")
    assert job.value("--schedule") == "* * * * *"
    assert job.value("--uri") == f"{WORKER_URL}/tasks/sweep"
    assert job.value("--oidc-token-audience") == WORKER_URL
    assert job.value("--oidc-service-account-email") == account("tasks")
    assert json.loads(job.value("--message-body")) == {}


def test_the_function_can_be_asked_in_its_place(tmp_path: Path) -> None:
    url = f"https://outbox-sweep-{NUMBER}.us-central1.run.app"
    job = one(run("schedule.sh", url, where=tmp_path, exists=False), "scheduler", "jobs", "create", "http")
    assert (job.value("--uri"), job.value("--oidc-token-audience")) == (url, WORKER_URL)


def test_rules_and_indexes_are_deployed_and_nobody_elses_indexes_removed(first_time: list[Command]) -> None:
    (firebase,) = (command for command in first_time if command.program == "npx")
    assert re.fullmatch(r"firebase-tools@\d+\.\d+\.\d+", firebase.arguments[1]), "a version that was tried"
    assert firebase.arguments[2:4] == ("deploy", "--only")
    assert "--force" not in firebase.arguments
    config = json.loads((ROOT / "firebase.json").read_text())["firestore"]
    for file in (config["rules"], config["indexes"]):
        assert (ROOT / file).is_file(), f"firebase.json names {file}, which is not there"
