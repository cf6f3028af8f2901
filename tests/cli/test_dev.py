"""`outbox dev`: ready, everything kept in a directory over a restart, and a clean end."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx

from firestore_emulator.child import PARENT_GONE
from tests.cli.support import COMMAND, FREE_PORTS, PORTS, Stack, are_gone, dev, until
from tests.patience import PATIENCE_SECONDS

ADDRESS = r"127\.0\.0\.1:\d+"
READY = (
    rf"ready  FIRESTORE_EMULATOR_HOST={ADDRESS}  CLOUD_TASKS_EMULATOR_HOST={ADDRESS}"
    rf"  functions=http://{ADDRESS}  worker=http://{ADDRESS}  provider=http://{ADDRESS}(  page=http://{ADDRESS})?  console=http://{ADDRESS}\n"
)


def ended_cleanly(stack: Stack, number: signal.Signals) -> None:
    children = stack.children()
    assert len(children) >= 4, "the parts are processes"
    assert stack.ended_by(number) == 0
    assert are_gone(children)


def test_a_stack_that_is_killed_leaves_no_process_and_no_port_behind() -> None:
    """Not even a part that cannot answer a signal, such as a worker that waits for a Firestore that is gone."""
    with dev(*FREE_PORTS) as stack, ExitStack() as kept:
        children = stack.children()
        assert len(children) >= 4, "the parts are processes"
        ends = {pid: os.pidfd_open(pid) for pid in children}
        for descriptor in ends.values():
            kept.callback(os.close, descriptor)
        for pid in children:
            os.kill(pid, signal.SIGSTOP)
            kept.callback(_kill, ends[pid])
        assert stack.ended_by(signal.SIGKILL) == -signal.SIGKILL
        for pid, descriptor in ends.items():  # readable when its process has ended
            ended, _, _ = select.select([descriptor], [], [], PATIENCE_SECONDS)
            assert ended, f"process {pid} is still there"
        for port in stack.ports.values():
            with socket.socket() as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(("127.0.0.1", int(port)))


def _kill(descriptor: int) -> None:
    """By its descriptor, which never names another process."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)


def test_a_part_ends_when_its_parent_closes_the_pipe_between_them() -> None:
    """The watch of systems that do not tell a process of its parent's death."""
    command = [sys.executable, "-m", "firestore_emulator.child", "firestore_outbox.local.simulators", "--port", "0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as part:
        assert part.stdin is not None
        assert part.stdout is not None
        try:
            assert part.stdout.readline().startswith(b"ready")
            part.stdin.close()
            assert part.wait(PATIENCE_SECONDS) == PARENT_GONE
        finally:
            part.kill()


def test_what_was_queued_before_a_restart_is_sent_after_it(tmp_path: Path) -> None:
    data = f"--data={tmp_path / 'data'}"
    with dev(*FREE_PORTS, data) as stack:
        assert re.fullmatch(READY, stack.line)
        for name in ("functions", "worker"):
            health = httpx.get(f"{stack.addresses[name]}/healthz", trust_env=False, timeout=PATIENCE_SECONDS)
            assert (health.status_code, health.text) == (200, "ok")
        account_id, paused = stack.account(), stack.account()
        sent = stack.send(account_id)
        stack.becomes(sent, "sent")
        assert stack("pause", paused).code == 0
        waiting = stack.send(paused)
        later = stack.send(account_id, "--delay-seconds=20")
        assert stack.status(later)["status"] == "queued"
        ports = [f"--{name}-port={stack.ports[name]}" for name in PORTS]
        ended_cleanly(stack, signal.SIGINT)

    with dev(*ports, "--page-port=0", data) as stack:
        assert stack.status(sent)["status"] == "sent"
        stack.becomes(later, "sent")
        assert stack.status(waiting)["status"] == "queued"
        assert stack("resume", paused).code == 0
        stack.becomes(waiting, "sent")
        assert stack.calls(account_id) == [sent, later], "the provider's record was kept, too"
        until(lambda: stack.status(later), lambda fields: fields["message"] == "read", "read")
        ended_cleanly(stack, signal.SIGTERM)


def test_a_part_that_dies_is_named_and_started_again(tmp_path: Path) -> None:
    told = tmp_path / "told"
    with told.open("w") as errors:
        command = [str(COMMAND), "dev", *FREE_PORTS]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert running.stdout is not None
        stack = Stack(running, running.stdout.readline(), running.stdout.readline())
        (worker,) = (pid for pid in stack.children() if "\0worker\0" in Path(f"/proc/{pid}/cmdline").read_text())
        os.kill(worker, signal.SIGKILL)
        until(told.read_text, lambda text: "worker runs again" in text, "the worker")
        assert "worker ended; starting it again" in told.read_text()
        health = f"http://127.0.0.1:{stack.ports['worker']}/healthz"
        assert httpx.get(health, trust_env=False, timeout=PATIENCE_SECONDS).text == "ok"
    finally:
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE_SECONDS) == 0


def test_another_project_is_served_and_a_client_of_a_third_one_is_reported(tmp_path: Path) -> None:
    told = tmp_path / "told"
    with told.open("w") as errors:
        command = [str(COMMAND), "dev", "--project", "chat-project", *FREE_PORTS]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert running.stdout is not None
        stack = Stack(running, running.stdout.readline(), running.stdout.readline())
        assert stack.environment["OUTBOX_PROJECT"] == "chat-project"
        assert stack("accounts", "add", "kiosk", "--provider", "simulated", "--no-secrets").code == 0
        stack.becomes(stack.send("kiosk"), "sent")
        stack.write("outbox/request-1", {"status": "queued"}, project="wrong-project")
        until(told.read_text, lambda text: "wrong-project" in text, "the report")
        line = next(line for line in told.read_text().splitlines() if "wrong-project" in line)
        assert "a client writes to project wrong-project, and this stack serves project chat-project" in line
        assert "Use the project id chat-project in that client, or start `outbox dev --project wrong-project`" in line
    finally:
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE_SECONDS) == 0
