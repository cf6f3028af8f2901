"""The `System` for one command, built from the environment as the worker's is.

The worker's libraries are imported when a command runs, not when it is declared: `--help` needs none of them.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from firestore_outbox.cli.output import fail, run

if TYPE_CHECKING:
    from firestore_outbox.firestore.gateway import Snapshot
    from firestore_outbox.settings import Settings
    from firestore_outbox.wiring import System

T = TypeVar("T")

LOCAL_TASKS = "127.0.0.1:8123"
"""The Cloud Tasks of `outbox dev` on its default ports."""
LOCAL_FUNCTIONS = "http://127.0.0.1:8081"
"""The functions of `outbox dev` on its default ports. A command does not call them."""
LOCAL_PROVIDER = "http://127.0.0.1:8083"
"""The provider simulator of `outbox dev` on its default ports."""


def environment_from(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command. If it names a Firestore emulator, the command also uses the local Cloud Tasks and
    calls the provider simulator, unless the environment names others. On Cloud Run nothing is added: `Settings`
    refuses emulators there, by the names as given."""
    from firestore_outbox.settings import CLOUD_RUN_VARIABLE

    given = dict(environment)
    if given.get("FIRESTORE_EMULATOR_HOST") and not given.get(CLOUD_RUN_VARIABLE):
        from firestore_outbox.local.provider_urls import provider_urls

        given.setdefault("OUTBOX_TASKS_EMULATOR_HOST", given.get("CLOUD_TASKS_EMULATOR_HOST") or LOCAL_TASKS)
        given.setdefault("OUTBOX_WEBHOOK_URL", LOCAL_FUNCTIONS)
        given = {**provider_urls(given.get("OUTBOX_SIMULATED_URL") or LOCAL_PROVIDER), **given}
    return given


def settings_from(environment: Mapping[str, str]) -> Settings:
    from firestore_outbox.settings import Settings

    return Settings.from_environment(environment_from(environment))


def with_system(work: Callable[[System], Awaitable[T]]) -> T:
    """Run a command's work on the emulator that FIRESTORE_EMULATOR_HOST names, or on Google Cloud without it."""
    from firestore_outbox.web.serve import system_from_environment

    _need_the_worker(os.environ)

    async def do() -> T:
        environment = environment_from(os.environ)
        async with system_from_environment(settings_from(environment), environment) as system:
            return await work(system)

    return run(do())


def _need_the_worker(environment: Mapping[str, str]) -> None:
    """Fail if the project's worker is not known: a command that changes something could not wake it, and would fail
    after its first write."""
    project = environment.get("OUTBOX_PROJECT")
    if project and not environment.get("FIRESTORE_EMULATOR_HOST") and not environment.get("OUTBOX_WORKER_URL"):
        fail(
            f"the worker of {project} is not known here (OUTBOX_WORKER_URL). Take over the settings of the deployed"
            f' worker, then try again:\n    eval "$(outbox doctor --project {project} --export)"'
        )


async def existing_account(system: System, account_id: str) -> Snapshot:
    """The account's document. The command fails if there is none."""
    from firestore_outbox.firestore import paths

    found = await system.gateway.get(paths.account(account_id)) if account_id and "/" not in account_id else None
    if found is None:
        fail(f"there is no account {account_id}: `outbox accounts list` shows them, `outbox accounts add` adds one")
    return found
