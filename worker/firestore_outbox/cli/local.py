"""Commands that run things here: emulator, dev, demo, worker, sim."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from firestore_outbox.local.dev import DevStack

from firestore_outbox.cli.output import Json, console, fail, run, stop_on_signals
from firestore_outbox.cli.serving import Host, Port, log_as_service, ready_line

Durable = Literal["process", "full"]
DevPort = Annotated[int | None, typer.Option(min=0, max=65535, help="0 takes a free one.")]
PORTS = {
    "firestore": 8080,
    "tasks": 8123,
    "functions": 8081,
    "worker": 8082,
    "provider": 8083,
    "page": 8084,
    "console": 8085,
    "identity": 8086,
}
OFFSETS = {
    "firestore": 0,
    "functions": 1,
    "worker": 2,
    "provider": 3,
    "page": 4,
    "console": 5,
    "identity": 6,
    "tasks": 8,
}
"""Of --port-base."""
PROJECT_ID = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")
PROJECT_RULE = "it has 6 to 30 lowercase letters, digits and hyphens, a letter first and no hyphen last"
LOG_SECONDS = 0.3
"""Between two looks at the logs of the stack."""


def register(app: typer.Typer) -> None:
    app.command()(emulator)
    app.command()(dev)
    app.command()(demo)
    app.command()(worker)
    app.command()(sim)


def emulator(
    firestore_port: Annotated[int, typer.Option(min=0, max=65535, help="Firestore's port; 0 takes a free one.")] = 8080,
    tasks_port: Annotated[int, typer.Option(min=0, max=65535, help="Cloud Tasks' port; 0 takes a free one.")] = 8123,
    data: Annotated[
        Path | None, typer.Option(file_okay=False, help="Keep everything in this directory. Without it: in memory.")
    ] = None,
    indexes: Annotated[
        Path | None,
        typer.Option(help="A firestore.indexes.json: queries that production would refuse are refused."),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(help="A firestore.rules to enforce, loaded again when it changes. Without it: none."),
    ] = None,
    functions: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where Firestore events of registered triggers go.")
    ] = None,
    database: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A database that every project has besides (default). May be repeated."),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Create this queue: projects/P/locations/L/queues/Q. May be repeated."),
    ] = None,
    optimistic: Annotated[
        bool, typer.Option("--optimistic", help="Transactions take no locks; a commit that comes too late is aborted.")
    ] = False,
    tasks_only: Annotated[bool, typer.Option("--tasks-only", help="Serve Cloud Tasks alone.")] = False,
    host: Annotated[str, typer.Option(help="The address to listen on. Every caller is believed.")] = "127.0.0.1",
    durable: Annotated[
        Durable, typer.Option(help="With --data: what survives. `full` is a power cut too, and syncs each commit.")
    ] = "process",
    with_parent: Annotated[
        bool, typer.Option("--with-parent", help="Exit at once when the process that started it is gone.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run Firestore and Cloud Tasks on this machine, for any project, until Ctrl-C."""
    from firestore_emulator import cli as emulator_command

    if functions is not None and not emulator_command.ADDRESS.fullmatch(functions):
        raise typer.BadParameter(emulator_command.NOT_AN_ADDRESS, param_hint="--functions")
    try:
        emulator_command.serve(
            port=firestore_port,
            tasks_port=tasks_port,
            data=data,
            indexes=indexes,
            rules=rules,
            functions=functions,
            databases=database or (),
            queues=queue or (),
            optimistic=optimistic,
            tasks_only=tasks_only,
            as_json=as_json,
            with_parent=with_parent,
            host=host,
            durable=durable,
            port_option="--firestore-port",
        )
    except emulator_command.Refused as refused:
        fail(str(refused))


def dev(
    project: Annotated[
        str, typer.Option(metavar="ID", help="The project id of the stack; clients must use the same.")
    ] = "demo-outbox",
    port_base: Annotated[
        int | None,
        typer.Option(
            min=1024,
            max=65000,
            metavar="N",
            help="Move all ports: Firestore N, functions +1, worker +2, provider +3, chat page +4, console +5, "
            "identity +6, Cloud Tasks +8.",
        ),
    ] = None,
    firestore_port: DevPort = None,
    tasks_port: DevPort = None,
    functions_port: DevPort = None,
    worker_port: DevPort = None,
    provider_port: DevPort = None,
    page_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The chat page [8084]; it needs the Firebase SDK (npm ci).")
    ] = None,
    console_port: DevPort = None,
    identity_port: DevPort = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the addresses and nothing else.")] = False,
    data: Annotated[
        Path | None, typer.Option(file_okay=False, help="Keep everything in this directory. Without it: in memory.")
    ] = None,
    indexes: Annotated[
        Path | None, typer.Option(help="Use this firestore.indexes.json instead of the product's own.")
    ] = None,
    rules: Annotated[
        Path | None, typer.Option(help="Enforce this firestore.rules instead of the product's own.")
    ] = None,
    no_rules: Annotated[
        bool, typer.Option("--no-rules", help="Enforce no security rules: every page may write every document.")
    ] = False,
    official: Annotated[bool, typer.Option("--official", help="Google's Firestore emulator instead of ours.")] = False,
    as_json: Json = False,
) -> None:
    """Run the whole product on this machine until Ctrl-C: Firestore, Cloud Tasks, functions, worker, a provider."""
    from firestore_emulator.official import EmulatorFailed, EmulatorMissing
    from firestore_emulator.processes import ProcessFailed
    from firestore_emulator.stack import CannotStart
    from firestore_outbox.local.dev import DevSettings, DevStack
    from firestore_outbox.local.page_site import missing
    from firestore_outbox.local.product import INDEXES, RULES

    if not PROJECT_ID.fullmatch(project):
        raise typer.BadParameter(f"{project!r} is not a project id; {PROJECT_RULE}", param_hint="--project")
    no_page = missing()
    ports = dict(PORTS) if port_base is None else {name: port_base + offset for name, offset in OFFSETS.items()}
    given = {
        "firestore": firestore_port,
        "tasks": tasks_port,
        "functions": functions_port,
        "worker": worker_port,
        "provider": provider_port,
        "page": page_port,
        "console": console_port,
        "identity": identity_port,
    }
    ports |= {name: port for name, port in given.items() if port is not None}
    settings = DevSettings(
        project=project,
        firestore_port=ports["firestore"],
        tasks_port=ports["tasks"],
        functions_port=ports["functions"],
        worker_port=ports["worker"],
        provider_port=ports["provider"],
        page_port=None if no_page else ports["page"],
        console_port=ports["console"],
        identity_port=ports["identity"],
        data=data,
        indexes=indexes or INDEXES,
        rules=None if no_rules else rules or RULES,
        official=official,
        environment={"OUTBOX_LOG_LEVEL": os.environ.get("OUTBOX_LOG_LEVEL", "INFO" if quiet or as_json else "DEBUG")},
    )

    is_talking = not (quiet or as_json)

    def tell(line: str) -> None:
        if is_talking:
            print(line, file=sys.stderr, flush=True)

    async def serve() -> None:
        stop = asyncio.Event()
        stop_on_signals(stop)
        tell("starting the stack …")
        async with DevStack(settings, tell) as stack:
            addresses = {
                "FIRESTORE_EMULATOR_HOST": stack.firestore,
                "CLOUD_TASKS_EMULATOR_HOST": stack.tasks,
                "functions": f"http://127.0.0.1:{stack.ports['functions']}",
                "worker": stack.worker_url,
                "provider": stack.provider_url,
                **({"page": stack.page_url} if stack.page_url else {}),
                **({"console": stack.console_url} if stack.console_url else {}),
            }
            if no_page:
                print(f"outbox: {no_page}", file=sys.stderr)
            _announce(addresses, as_json)
            if not as_json:
                console.out(f"{_exports(stack.exports)}  # for another terminal")
            if is_talking:
                for line in _what_next(stack):
                    console.out(line)
                console.file.flush()
            await _until(stop, stack, tell)

    try:
        run(serve())
    except (CannotStart, ProcessFailed, EmulatorMissing, EmulatorFailed) as error:
        fail(str(error))


async def _until(stop: asyncio.Event, stack: DevStack, tell: Callable[[str], None]) -> None:
    """Show what happens, and keep every part running."""
    from firestore_outbox.local.dev_log import LogTail
    from firestore_outbox.local.dev_strangers import report_strangers

    tail = LogTail(stack.logs)
    tail.skip()
    background = [asyncio.create_task(stack.keep_running())]
    if not stack.settings.official:
        strangers = report_strangers(stack.firestore, stack.settings.project, tell)
        background.append(asyncio.create_task(strangers))
    try:
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOG_SECONDS):
                    await stop.wait()
            tail.tell(tell, datetime.now().astimezone())
    finally:
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)


def _what_next(stack: DevStack) -> Iterator[str]:
    rows = {
        "project": stack.settings.project,
        "console": stack.console_url or "not served",
        "chat page": stack.page_url or "not served (it needs the Firebase SDK: npm ci)",
        "Firestore": stack.firestore,
        "Cloud Tasks": stack.tasks,
        "functions": f"http://127.0.0.1:{stack.ports['functions']}",
        "worker": stack.worker_url,
        "provider": f"{stack.provider_url}/_sim/calls",
        "credentials": stack.exports.get("OUTBOX_CREDENTIALS_FILE", "as the environment says"),
        "logs": str(stack.log_directory),
    }
    yield ""
    yield from (f"  {name:12} {value}" for name, value in rows.items())
    yield ""
    yield "Next, in another terminal, after the export above:"
    if stack.page_url is None:  # the page adds the account
        yield "  outbox accounts add shop --provider simulated --no-secrets"
    yield '  outbox send --account shop --to +491511234567 --text "Hello"'
    yield "What happens to messages is shown below. Ctrl-C stops the stack."
    yield ""


def _exports(variables: Mapping[str, str]) -> str:
    """The line that makes the commands of another terminal use this stack."""
    return "export " + " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())


def demo(
    messages: Annotated[int, typer.Option(min=1, max=100_000, help="How many messages to send.")] = 1000,
    accounts: Annotated[int, typer.Option(min=1, max=100, help="Over how many accounts.")] = 5,
    official: Annotated[bool, typer.Option("--official", help="Google's Firestore emulator instead of ours.")] = False,
    as_json: Json = False,
) -> None:
    """Send messages through a faulty provider, and show what became of them. Ends by itself."""
    from firestore_emulator.official import EmulatorFailed, EmulatorMissing
    from firestore_emulator.processes import ProcessFailed
    from firestore_emulator.stack import CannotStart
    from firestore_outbox.cli.demo import run_demo

    try:
        if not run(run_demo(messages=messages, accounts=accounts, official=official, as_json=as_json)):
            raise typer.Exit(1)
    except (CannotStart, ProcessFailed, EmulatorMissing, EmulatorFailed) as error:
        fail(str(error))


def worker(
    port: Port = 8082,
    host: Host = "127.0.0.1",
    pull: Annotated[bool, typer.Option("--pull", help="Follow ready lanes with a listener, without HTTP.")] = False,
    as_json: Json = False,
) -> None:
    """Run the Cloud Run service, or with --pull an always-on worker."""
    from firestore_outbox.cli.system import settings_from
    from firestore_outbox.web.serve import serve_http, serve_pull

    log_as_service()
    ready = ready_line("worker", as_json=as_json)

    async def serve() -> None:
        settings = settings_from(os.environ)
        await (serve_pull(settings, ready) if pull else serve_http(settings, host, port, ready))

    run(serve())


def sim(
    seeds: Annotated[int, typer.Option(min=1, help="Worlds to run.")] = 100,
    first: Annotated[int, typer.Option(min=0, help="The first seed: a long run can go on where one stopped.")] = 0,
    seed: Annotated[int | None, typer.Option(help="Run this seed alone, and print a trace if it fails.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
    as_json: Json = False,
) -> None:
    """Run simulated worlds in virtual time, with crashes and lost messages; the auditor checks each."""
    from firestore_outbox.local.simulation.command import simulate

    if seed is not None:
        first, seeds = seed, 1
    if not simulate(first=first, count=seeds, jobs=jobs, as_json=as_json):
        raise typer.Exit(1)


def _announce(addresses: dict[str, str], as_json: bool) -> None:
    if as_json:
        print(json.dumps(addresses), flush=True)
    else:
        console.out("ready  " + "  ".join(f"{name}={address}" for name, address in addresses.items()))
        console.file.flush()
