"""The development stack: what the provider simulator saw, faults to order, a phone to play, and what the security rules
refused. Where there is no simulator, and on Cloud Run, none of this exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import httpx

from firestore_outbox.messages.ids import is_account_id
from firestore_outbox.web.console.deeds import Deed, Form, Outcome, Subject, not_done
from firestore_outbox.web.console.rights import Person, Right
from firestore_outbox.web.console.screens import FAST, Console, Params, Screen, Viewer

MOST = 30
"""Calls and refusals that are shown, the newest first."""
FAULTS: Mapping[str, str] = {
    "errorRate": "Calls refused, 0 to 1",
    "throttleRate": "Calls throttled, 0 to 1",
    "lostResponseRate": "Sent, and the answer is lost, 0 to 1",
    "receiptLossRate": "Receipts that never come, 0 to 1",
    "latencyMs": "Milliseconds until an answer",
    "forCalls": "Only for this number of calls",
}
"""Those that the form orders; `PUT /_sim/faults` knows more."""
BEHIND = "/dev"


async def load(console: Console, viewer: Viewer, params: Params) -> dict[str, Any] | None:
    if console.simulator is None:
        return None
    async with _http() as http:
        calls = (await http.get(f"{console.simulator}/_sim/calls")).json()[-MOST:]
        faults = (await http.get(f"{console.simulator}/_sim/faults")).json()
        refusals = await _refusals(console, http)
    return {
        "calls": [{**call, "at": datetime.fromisoformat(call["at"])} for call in reversed(calls)],
        "fields": [(name, _shown(faults.get(name)), words) for name, words in FAULTS.items()],
        "refusals": refusals,
    }


async def _refusals(console: Console, http: httpx.AsyncClient) -> list[dict[str, Any]] | None:
    """The newest first; None: this emulator does not tell."""
    if console.emulator is None:
        return None
    project = console.system.settings.project
    answer = await http.get(f"http://{console.emulator}/emulator/v1/projects/{project}:ruleRefusals")
    if answer.status_code != httpx.codes.OK:
        return None
    found = answer.json()["refusals"][-MOST:]
    return [{**one, "at": datetime.fromtimestamp(one["micros"] / 1_000_000, UTC)} for one in reversed(found)]


def _shown(value: Any) -> str:
    return "" if value in (None, 0) else str(value)


def _http() -> httpx.AsyncClient:
    return httpx.AsyncClient(trust_env=False, timeout=10)


async def find(console: Console, person: Person, name: str) -> Subject | None:
    """None where there is no simulator: the action does not exist there."""
    if console.simulator is None:
        return None
    return Subject(id="the provider simulator", account_id=None, right=Right.OPERATE)


async def _order(console: Console, person: Person, subject: Subject, form: Form) -> Outcome:
    ordered: dict[str, float | int] = {}
    for name in FAULTS if not form.get("reset") else ():
        text = form.get(name, "").strip()
        try:
            number = float(text) if text else 0.0
        except ValueError:
            return not_done(f"{name} must be a number", BEHIND)
        if number:
            ordered[name] = number if name.endswith("Rate") else int(number)
    async with _http() as http:
        answer = await http.put(f"{console.simulator}/_sim/faults", json=ordered)
    if answer.is_error:
        return not_done(f"the simulator refused that: {answer.text[:200]}", BEHIND)
    words = ", ".join(f"{name} {value:g}" for name, value in ordered.items())
    return Outcome(sentence=f"Faults: {words}." if ordered else "The provider works without faults.", to=BEHIND)


async def _say(console: Console, person: Person, subject: Subject, form: Form) -> Outcome:
    """A person with a phone writes to an account."""
    account_id, sender, text = (form.get(name, "").strip() for name in ("account", "from", "text"))
    if not is_account_id(account_id) or not sender or not text:
        return not_done("name the account, who writes, and the text", BEHIND)
    route = await console.system.accounts.route(account_id)
    if route is None:
        return not_done(f"there is no account {account_id}", BEHIND)
    body = {"accountId": account_id, "from": sender, "text": text, "provider": route.provider}
    async with _http() as http:
        answer = await http.post(f"{console.simulator}/_sim/inbound", json=body)
    if answer.is_error:
        return not_done(f"the simulator refused that: {answer.text[:200]}", BEHIND)
    return Outcome(sentence=f"{sender} wrote to {account_id}.", to=BEHIND)


SCREENS = (
    Screen(
        path="/dev",
        template="dev.html",
        title="Development",
        section="dev",
        load=load,
        every=FAST,
        operators_only=True,
    ),
)
DEEDS = (
    Deed(action="dev.faults", path="/dev/faults", find=find, do=_order),
    Deed(action="dev.say", path="/dev/say", find=find, do=_say),
)
