"""One table of roles: the HTTP API's own, the one in firestore.rules and the one in docs/rules.md agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from firestore_outbox.accounts.roles import MAY, Action, Role
from firestore_outbox.web.runs_api import ACTIONS

ROOT = Path(__file__).parents[2]
RULES = re.sub(r"//[^\n]*", "", (ROOT / "firestore.rules").read_text())
BY_FUNCTION = {
    Action.READ: "mayRead",
    Action.SEND: "maySend",
    Action.REMIND: "maySend",
    Action.CHANGE_REMINDER: "maySend",
    Action.CANCEL_OWN: "mayCancel of one's own",
    Action.CANCEL_OTHERS: "mayCancel",
    Action.STEER_RUN: "maySteer",
    Action.ADMINISTER: "mayAdminister",
}
"""Which function of the rules an action goes by."""


def body_of(function: str) -> str:
    found = re.search(rf"function {function}\([^)]*\) {{(.*?)}}", RULES, re.DOTALL)
    assert found is not None, function
    return found[1]


def roles_in_the_rules(function: str) -> set[str]:
    """By the form in which the rules are written; another form finds no roles, and fails."""
    if listed := re.search(r"return role\(accountId\) in \[([^\]]*)\];", body_of(function.split()[0])):
        return set(re.findall(r"'(\w+)'", listed[1]))
    alternatives = re.sub(r"\s+", " ", body_of("mayCancel")).strip().removeprefix("return ").rstrip(";").split("||")
    allowed = set()
    for alternative in alternatives:
        (role,) = re.findall(r"role\(entry\.accountId\) == '(\w+)'", alternative)
        if "entry.createdBy == request.auth.uid" not in alternative or function.endswith("own"):
            allowed.add(role)
    return allowed


def documented() -> dict[str, set[str]]:
    lines = (ROOT / "docs" / "rules.md").read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| | owner | agent | viewer |"))
    found = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        what, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        allowed = {role.value for role, cell in zip(Role, cells, strict=False) if cell == "yes"}
        found[what] = allowed
    return found


@pytest.mark.parametrize("action", Action)
def test_a_role_may_do_by_the_api_what_the_rules_allow_to_its_client(action: Action) -> None:
    assert {*MAY[action]} == roles_in_the_rules(BY_FUNCTION[action])


@pytest.mark.parametrize("action", Action)
def test_the_document_says_the_same(action: Action) -> None:
    assert documented()[action.value] == {role.value for role in MAY[action]}


def test_no_action_of_the_api_is_outside_of_the_table() -> None:
    assert {*ACTIONS.values()} <= {*MAY}
    assert {*MAY} == {*Action}


def test_nothing_in_the_api_compares_roles_by_itself() -> None:
    for file in [
        *(ROOT / "worker" / "firestore_outbox" / "web").glob("*_api.py"),
        ROOT / "worker/firestore_outbox/web/http_api.py",
        ROOT / "worker/firestore_outbox/web/functions.py",
    ]:
        assert not re.search(r"[\"'](owner|agent|viewer)[\"']", file.read_text()), file
