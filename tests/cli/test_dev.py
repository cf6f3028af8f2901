"""`outbox dev`: ready, everything kept in a directory over a restart, and a clean end."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import httpx

from tests.cli.support import FREE_PORTS, PORTS, Stack, are_gone, dev, until
from tests.patience import PATIENCE_SECONDS

ADDRESS = r"127\.0\.0\.1:\d+"
READY = (
    rf"ready  FIRESTORE_EMULATOR_HOST={ADDRESS}  CLOUD_TASKS_EMULATOR_HOST={ADDRESS}"
    rf"  functions=http://{ADDRESS}  worker=http://{ADDRESS}  provider=http://{ADDRESS}(  page=http://{ADDRESS})?\n"
)


def ended_cleanly(stack: Stack, number: signal.Signals) -> None:
    children = stack.children()
    assert len(children) >= 4, "the parts are processes"
    assert stack.ended_by(number) == 0
    assert are_gone(children)


def test_a_stack_that_is_killed_leaves_nothing_behind() -> None:
    with dev(*FREE_PORTS) as stack:
        children = stack.children()
        assert len(children) >= 4, "the parts are processes"
        assert stack.ended_by(signal.SIGKILL) == -signal.SIGKILL
        until(lambda: are_gone(children), bool, "the end of its parts")


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
