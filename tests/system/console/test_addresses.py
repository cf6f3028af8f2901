"""Who may read what in the console: each address with each role, without a session, and on another's.

test_security.py has the actions. Together they name every address: a new one fails here until it is in a table.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import pytest
from starlette.routing import Mount, Route

from firestore_outbox.clock import system_clock
from firestore_outbox.web.console.app import routed
from firestore_outbox.web.console.identity import Identity
from firestore_outbox.web.console.pages import SCREENS
from firestore_outbox.web.console.screens import Console
from firestore_outbox.web.console.views import Views
from firestore_outbox.wiring import System
from tests.system.console.conftest import ROLES, World
from tests.system.console.documents import outbox_document, reminder_document, run_document
from tests.system.console.test_security import DEED_OF, TABLE

pytestmark = pytest.mark.asyncio(loop_scope="session")

SHOWN, UNKNOWN = 200, 404
ALL = (SHOWN,) * 5
MEMBERS = (SHOWN, SHOWN, SHOWN, UNKNOWN, SHOWN)
SENDERS = (SHOWN, SHOWN, UNKNOWN, UNKNOWN, SHOWN)
OWNERS = (SHOWN, UNKNOWN, UNKNOWN, UNKNOWN, SHOWN)
OPERATORS = (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, SHOWN)

READ: Mapping[str, tuple[int, ...]] = {
    # owner, agent, viewer, a person who is no member, operator
    "/": ALL,
    "/needs": ALL,
    "/messages": ALL,
    "/messages/{id}": MEMBERS,
    "/messages/{id}.json": MEMBERS,
    "/runs": ALL,
    "/runs/{id}": MEMBERS,
    "/runs/{id}.csv": MEMBERS,
    "/runs/{id}/cancel": OWNERS,
    "/runs/{id}/retry": SENDERS,
    "/reminders/new": ALL,
    "/reminders/{id}": MEMBERS,
    "/reminders/{id}/edit": SENDERS,
    "/reminders/{id}/remove": SENDERS,
    "/accounts/{id}": MEMBERS,
    "/accounts/{id}/contacts": MEMBERS,
    "/accounts/{id}/notifications": MEMBERS,
    "/accounts/{id}/settings": OWNERS,
    "/accounts/{id}/phone": OWNERS,
    "/accounts/{id}/redrive": OWNERS,
    "/lanes": OPERATORS,
    "/audit": OPERATORS,
    "/dev": OPERATORS,
}
OPEN = {
    *(("GET", "/healthz"), ("GET", "/static"), ("GET", "/sign-in"), ("POST", "/sign-in"), ("POST", "/sign-out")),
    *(("GET", "/sign-in/google"), ("GET", "/sign-in/google/back")),
}
"""For persons who have not signed in."""
LIVE = [screen.path for screen in SCREENS if screen.is_live]


async def test_every_address_of_the_console_is_in_a_table() -> None:
    system = object.__new__(System)  # no address is asked for, so nothing of it but its clock is needed
    object.__setattr__(system, "clock", system_clock)
    console = Console(system, Identity("project", "", system_clock, {}), Views(system_clock))
    found: set[tuple[str, str]] = set()
    for route in routed(console).routes:
        assert isinstance(route, Route | Mount)
        methods = route.methods - {"HEAD"} if isinstance(route, Route) and route.methods else {"GET"}
        found |= {(method, route.path) for method in methods}
    reading = {("GET", path) for path in READ} | {("GET", f"/live{path}") for path in LIVE}
    acting = {("POST", DEED_OF[action].path) for action in TABLE}
    assert found == OPEN | reading | acting


async def address_of(world: World, path: str, account_id: str) -> str:
    match path.split("/")[1]:
        case "messages" if "{id}" in path:
            return path.replace("{id}", await outbox_document(world, account_id, "failed"))
        case "runs" if "{id}" in path:
            return path.replace("{id}", await run_document(world, account_id))
        case "reminders" if "{id}" in path:
            return path.replace("{id}", await reminder_document(world, account_id))
        case _:
            return path.replace("{id}", account_id)


@pytest.mark.parametrize("path", READ)
async def test_a_page_is_open_to_the_roles_that_the_table_says(world: World, path: str) -> None:
    address = await address_of(world, path, await world.account(f"read-{secrets.token_hex(4)}"))
    for role, status in zip(ROLES, READ[path], strict=True):
        answer = await (await world.person(role)).get(address)
        assert answer.status_code == status, f"{role}: {answer.text}"


@pytest.mark.parametrize("path", READ)
async def test_without_a_session_a_page_leads_to_the_sign_in_and_back(world: World, path: str) -> None:
    address = await address_of(world, path, await world.account(f"read-{secrets.token_hex(4)}"))
    answer = await world.browser().get(address)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/sign-in?to={address}")
    assert answer.text == ""


@pytest.mark.parametrize("path", LIVE)
async def test_without_a_session_nothing_is_followed(world: World, path: str) -> None:
    assert (await world.browser().get(f"/live{path}")).status_code == 401


@pytest.mark.parametrize("path", [path for path in READ if "{id}" in path])
async def test_a_page_of_another_tenant_is_answered_like_one_that_does_not_exist(world: World, path: str) -> None:
    address = await address_of(world, path, await world.account(f"far-{secrets.token_hex(4)}", members=False))
    owner = await world.person("owner")
    others, missing = await owner.get(address), await owner.get(path.replace("{id}", "no-such-thing"))
    assert others.status_code == missing.status_code == UNKNOWN
    assert others.text == missing.text
