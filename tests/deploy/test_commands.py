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
from firestore_outbox.local.functions_host import OUTBOX_TRIGGER, TRIGGERS
from firestore_outbox.settings import PREFIX, Settings
from firestore_outbox.web.console.app import RECHECK
from tests.deploy.support import API_KEY, NUMBER, PROJECT, ROOT, Command, ask_gcloud, everything, one, run, tried

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
        if script.name in ("base.sh", "gate.sh", "image.sh"):
            continue  # they build an image or run the tests, and touch no project
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
        assert unknown <= literals, f"{command.words}: no code reads {unknown - literals}"


def test_the_settings_that_are_deployed_are_valid_and_name_what_was_made(first_time: list[Command]) -> None:
    for command in deployed(first_time):
        settings = Settings.from_environment(command.pairs("--set-env-vars"))
        made = [c for c in first_time if c.words[:3] == ("tasks", "queues", "create")]
        assert settings.queue_names == tuple(
            f"projects/{PROJECT}/locations/{queue.value('--location')}/queues/{queue.words[-1]}" for queue in made
        )
        assert settings.worker_url == WORKER_URL
        assert settings.service_account == account("tasks")
        assert settings.tasks_emulator_host == ""
        bucket = one(first_time, "storage", "buckets", "create")
        assert bucket.words[-1] == f"gs://{settings.media_bucket}"


def test_no_emulator_is_ever_deployed(first_time: list[Command]) -> None:
    for command in first_time:
        assert "EMULATOR" not in str(command)


def test_the_users_own_settings_are_added(tmp_path: Path) -> None:
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
    assert deployed == [
        "on_outbox_created",
        "on_cancel_created",
        "on_reminder_created",
        "on_request_created",
        "provider_webhook",
        "enqueue",
        "reminders",
        "runs",
        "accounts",
        "files",
    ]


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


@pytest.mark.parametrize("name", sorted(TRIGGERS))
def test_a_trigger_watches_the_documents_of_the_chosen_database(tmp_path: Path, name: str) -> None:
    command = function(run("functions.sh", name, where=tmp_path, exists=True, OUTBOX_DATABASE="eu"), name)
    assert "database=eu" in command.values("--trigger-event-filters")
    assert command.value("--trigger-event-filters-path-pattern") == f"document={TRIGGERS[name]}"
    assert command.has("--retry"), "an event that fails would be gone"


# --- who may call what


@pytest.mark.parametrize("name", sorted(TRIGGERS))
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
    worker = one(first_time, "run", "deploy", "outbox-worker")
    assert worker.value("--ingress") == "internal"
    assert worker.has("--no-invoker-iam-check"), "Cloud Run's own check removes the signature that the worker checks"
    sweep = function(first_time, "sweep")
    assert sweep.value("--ingress-settings") == "internal-only"
    assert sweep.has("--allow-unauthenticated")


def test_the_console_is_open_to_browsers_and_is_one_instance_at_most(first_time: list[Command]) -> None:
    console = one(first_time, "run", "deploy", "outbox-console")
    assert console.value("--ingress") == "all"
    assert console.has("--no-invoker-iam-check"), "browsers have no token of Google's; the console checks its cookie"
    assert (console.value("--min-instances"), console.value("--max-instances")) == ("0", "1")
    assert int(console.value("--timeout")) > RECHECK.total_seconds(), "a live page ends by itself, and comes again"


OPEN = ("provider_webhook", "enqueue", "open_messages", "billing_webhook", "reminders", "runs", "accounts", "files")


@pytest.mark.parametrize("name", OPEN)
def test_what_providers_and_apps_call_is_open_and_checks_by_itself(first_time: list[Command], name: str) -> None:
    command = function(first_time, name)
    assert command.has("--allow-unauthenticated")
    assert not command.has("--ingress-settings")


# --- who may do what

ROLES = {
    "worker": {"datastore.user", "secretmanager.secretAccessor", "firebasecloudmessaging.admin"},
    "functions": {"datastore.user", "secretmanager.secretAccessor"},
    "console": {"datastore.user", "secretmanager.secretAccessor", f"projects/{PROJECT}/outboxConsoleSignIn"},
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
    ("console", "tasks"),
    *(("deploy", other) for other in ("worker", "functions", "console", "tasks", "events", "deploy")),
}


def named(member: str) -> str:
    found = re.fullmatch(rf"serviceAccount:outbox-(\w+)@{PROJECT}\.iam\.gserviceaccount\.com", member)
    assert found, f"a right for another member: {member}"
    return found[1]


def test_each_account_has_these_rights_and_no_others(first_time: list[Command]) -> None:
    found: dict[str, set[str]] = {}
    for command in first_time:
        if command.words[:2] == ("projects", "add-iam-policy-binding"):
            found.setdefault(named(command.value("--member")), set()).add(command.value("--role").replace("roles/", ""))
    assert found == ROLES


def test_secrets_are_those_of_accounts_and_of_settings_alone(first_time: list[Command]) -> None:
    from firestore_outbox.providers.secret_manager import PREFIX as SECRETS

    bound = [c for c in first_time if c.values("--role") == ["roles/secretmanager.secretAccessor"]]
    allowed = [f'resource.name.startsWith("projects/{NUMBER}/secrets/{one}")' for one in (SECRETS, "outbox-setting-")]
    expression = " || ".join(allowed)
    assert [c.value("--condition") for c in bound] == [f"title=outbox-secrets,expression={expression}"] * 3


def test_rights_on_one_thing_are_given_on_that_thing_alone(first_time: list[Command]) -> None:
    queue = [c for c in first_time if c.words[:3] == ("tasks", "queues", "add-iam-policy-binding")]
    assert {(named(c.value("--member")), c.value("--role")) for c in queue} == {
        ("worker", "roles/cloudtasks.enqueuer"),
        ("functions", "roles/cloudtasks.enqueuer"),
        ("console", "roles/cloudtasks.enqueuer"),
    }
    bucket = [c for c in first_time if c.words[:3] == ("storage", "buckets", "add-iam-policy-binding")]
    assert {(named(c.value("--member")), c.value("--role")) for c in bucket} == {
        ("worker", "roles/storage.objectViewer"),
        ("worker", "roles/storage.objectCreator"),
        ("functions", "roles/storage.objectViewer"),
        ("functions", "roles/storage.objectCreator"),
        ("console", "roles/storage.objectViewer"),
    }


@pytest.mark.parametrize("is_there", [False, True])
def test_the_console_may_make_read_and_revoke_sessions_and_nothing_else_in_firebase_auth(
    first_time: list[Command], again: list[Command], is_there: bool
) -> None:
    role = one(again if is_there else first_time, "iam", "roles", "update" if is_there else "create")
    assert role.words[-1] == "outboxConsoleSignIn"
    rights = ("createSession", "get", "update")
    assert role.value("--permissions") == ",".join(f"firebaseauth.users.{right}" for right in rights)


def test_no_account_acts_as_another_except_to_hand_on_its_name(first_time: list[Command]) -> None:
    found, signers = set(), set()
    for command in first_time:
        if command.words[:3] == ("iam", "service-accounts", "add-iam-policy-binding"):
            pair = named(command.value("--member")), named(f"serviceAccount:{command.words[-1]}")
            if command.value("--role") == "roles/iam.serviceAccountUser":
                found.add(pair)
            else:
                assert command.value("--role") == "roles/iam.serviceAccountTokenCreator"
                signers.add(pair)
    assert found == ACTS_AS
    assert signers == {("worker", "worker"), ("functions", "functions")}, "each signs addresses of files for itself"


def test_every_account_that_is_used_is_made(first_time: list[Command]) -> None:
    made = {c.words[-1] for c in first_time if c.words[:3] == ("iam", "service-accounts", "create")}
    used = set(re.findall(rf"(outbox-\w+)@{PROJECT}", " ".join(map(str, first_time))))
    assert used == made


def test_nothing_runs_as_the_projects_default_account(first_time: list[Command]) -> None:
    for command in deployed(first_time):
        kind = command.words[2].removeprefix("outbox-") if command.words[0] == "run" else "functions"
        assert command.value("--service-account") == account(kind)
        if kind == "functions":
            assert command.value("--build-service-account").endswith(account("deploy"))


# --- the queue and the clock


def queues(commands: list[Command]) -> list[Command]:
    return [command for command in commands if command.words[:3] == ("tasks", "queues", "update")]


def test_the_queue_tries_again_soon_often_and_long_enough(first_time: list[Command]) -> None:
    for queue in queues(first_time):
        assert queue.value("--min-backoff") == "1s"
        assert queue.value("--max-backoff") == "60s", "the default of an hour would keep a lane asleep for an hour"
        assert int(queue.value("--max-attempts")) >= 10
        assert queue.value("--max-retry-duration") == "3600s"


def test_no_more_tasks_are_under_way_than_the_worker_takes(first_time: list[Command]) -> None:
    worker = one(first_time, "run", "deploy", "outbox-worker")
    instances = int(worker.value("--max-instances"))
    at_once = [int(queue.value("--max-concurrent-dispatches")) for queue in queues(first_time)]
    assert sum(at_once) == instances * int(worker.value("--concurrency")) <= 5_000
    assert at_once[0] > 2 * instances, "an instance keeps a request open while its lanes are busy; others must get in"


def test_lanes_are_divided_among_as_many_queues_as_are_asked_for(tmp_path: Path) -> None:
    commands = run("queue.sh", where=tmp_path, exists=False, LANE_QUEUES="3")
    names = [queue.words[-1] for queue in queues(commands)]
    assert names == ["outbox-lanes", "outbox-lanes-1", "outbox-lanes-2", "outbox-receipts"]
    assert set(Settings(queues=3, receipt_queue=names[-1]).queue_names) == {
        f"projects/demo-outbox/locations/us-central1/queues/{name}" for name in names
    }


def test_a_run_of_a_lane_ends_before_its_request_does(first_time: list[Command]) -> None:
    timeout = int(one(first_time, "run", "deploy", "outbox-worker").value("--timeout"))
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


def test_rules_and_indexes_are_deployed_and_no_foreign_index_removed(first_time: list[Command]) -> None:
    (firebase,) = (command for command in first_time if command.program == "npx")
    assert re.fullmatch(r"firebase-tools@\d+\.\d+\.\d+", firebase.arguments[1]), "a version that was tried"
    assert firebase.arguments[2:4] == ("deploy", "--only")
    assert "--force" not in firebase.arguments
    config = json.loads((ROOT / "firebase.json").read_text())["firestore"]
    for file in (config["rules"], config["indexes"]):
        assert (ROOT / file).is_file(), f"firebase.json names {file}, which is not there"


def test_secret_settings_come_from_secret_manager_for_worker_and_functions(tmp_path: Path) -> None:
    secrets = "OUTBOX_HANDLER_SECRET=outbox-setting-handler:latest"
    commands = run("worker.sh", "an-image", where=tmp_path, exists=True, EXTRA_SECRETS=secrets)
    commands += run("functions.sh", "events", where=tmp_path, exists=True, EXTRA_SECRETS=secrets)
    deployed = [command for command in commands if "deploy" in command.words]
    assert [command.value("--set-secrets") for command in deployed] == [secrets, secrets]
    answers, complaints = ask_gcloud({"commands": [list(command.arguments) for command in deployed]})
    assert all(answers["understood"]), complaints


# --- the console


def test_the_console_gets_the_key_for_sign_in_and_says_where_it_is(tmp_path: Path) -> None:
    done, commands = tried("console.sh", "an-image", where=tmp_path, exists=False, FIREBASE_API_KEY=API_KEY)
    console = one(commands, "run", "deploy", "outbox-console")
    assert Settings.from_environment(console.pairs("--set-env-vars")).firebase_api_key == API_KEY
    assert console.value("--image") == "an-image"
    address = f"https://outbox-console-{NUMBER}.us-central1.run.app"
    assert f"the console: {address}\n" in done.stdout
    assert f"{address}/sign-in/google/back" in done.stdout


def test_the_console_runs_the_image_of_the_worker_unless_another_is_named(tmp_path: Path) -> None:
    commands = run("console.sh", where=tmp_path, exists=True, FIREBASE_API_KEY=API_KEY)
    assert one(commands, "run", "deploy").value("--image") == "the-image-of-the-worker"


def test_a_release_updates_a_console_and_keeps_its_key(tmp_path: Path) -> None:
    commands = run("console.sh", "--if-deployed", "a-new-image", where=tmp_path, exists=True)
    console = one(commands, "run", "deploy")
    assert console.value("--image") == "a-new-image"
    assert not console.has("--set-env-vars"), "it would remove the key"
    assert "OUTBOX_FIREBASE_API_KEY" not in console.pairs("--update-env-vars")
    answers, complaints = ask_gcloud({"commands": [list(console.arguments)]})
    assert all(answers["understood"]), complaints


def test_a_release_adds_no_console_to_a_project_without_one(tmp_path: Path) -> None:
    done, commands = tried("console.sh", "--if-deployed", "an-image", where=tmp_path, exists=False)
    assert done.returncode == 0
    assert "this project has no console" in done.stdout
    assert [command for command in commands if "deploy" in command.words] == []


@pytest.mark.parametrize(
    ("key", "sentence"),
    [("", "set FIREBASE_API_KEY"), (API_KEY, "run deploy/worker.sh IMAGE first")],
)
def test_without_a_key_or_an_image_the_script_says_what_to_do(tmp_path: Path, key: str, sentence: str) -> None:
    done, commands = tried("console.sh", where=tmp_path, exists=False, FIREBASE_API_KEY=key)
    assert done.returncode != 0
    assert sentence in done.stderr
    assert [command for command in commands if "deploy" in command.words] == []
