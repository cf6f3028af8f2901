"""An account for its owners: settings, members, secrets, limits, and its phone, linked with a code on the page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import segno
from markupsafe import Markup

from firestore_outbox.accounts.account import Account, parse_account
from firestore_outbox.accounts.administration import NoAccount
from firestore_outbox.accounts.changes import BY_OPERATORS, SETTABLE, Refused
from firestore_outbox.accounts.roles import Role
from firestore_outbox.messages.ids import is_account_id
from firestore_outbox.plans.plan import plan_of, plans
from firestore_outbox.plans.usage import Counts
from firestore_outbox.sessions.memory import Shown as SessionState
from firestore_outbox.sessions.store import code_path, current_path
from firestore_outbox.web.console.deeds import Deed, Do, Form, Outcome, Subject, account_with, not_done
from firestore_outbox.web.console.rights import Person, Right
from firestore_outbox.web.console.screens import FAST, Console, Params, Screen, Viewer

CHECK_LIMIT = timedelta(seconds=10)
"""For the provider's answer about the credentials."""
HINTS: Mapping[str, str] = {
    "timezone": "such as Europe/Berlin; default UTC",
    "pace.perMinute": "messages a minute; 0: no limit",
    "pace.burst": "messages that may go at once; default 1",
    "pace.perRecipientSeconds": "seconds between two messages to one recipient",
    "concurrency": "calls to the provider at once",
    "onUncertain": "hold: a person settles it; resend: send it again",
    "window.startHour": "first hour of sending, 0 to 23",
    "window.endHour": "hour at which sending ends, 1 to 24",
    "recipientHours.startHour": "first hour of runs on the recipient's clock, 0 to 23",
    "recipientHours.endHour": "hour at which runs end on the recipient's clock, 1 to 24",
    "frequencyCap.messages": "marketing messages that a recipient may get in these days",
    "frequencyCap.days": "days in which they are counted",
    "fallbackTemplate.name": "a template for texts that the provider refuses after 24 hours",
    "fallbackTemplate.language": "its language, such as en_US",
    "fallbackTemplate.params": 'its values, such as ["Ana"]',
    "notify.webhook": "a URL that gets notifications of runs",
    "dailyCap": "messages a day; empty: as many as the pace allows",
    "warmUp.startPerDay": "of a new number: messages on the first day",
    "warmUp.factor": "each day allows this many times the day before; default 1.5",
    "warmUp.untilPerDay": "the warm-up ends when a day would allow this many",
    "warmUp.since": "its first day, such as 2026-03-01; empty: today",
    "newContactsPerDay": "people to whom it writes for the first time in a day",
    "tier": "the provider's messaging limit, such as 1000; forecasts use it",
    "pauseRunsAt.percent": "a run pauses itself when more of it is refused; default 20",
    "pauseRunsAt.outcomes": "messages of a run in a sample; default 50",
    "optOut.off": "true: words of opting out mean nothing",
    "optOut.languages": 'a list, such as ["en", "de"]',
    "optOut.words": "a list of further words",
    "retentionDays": "days after which messages are deleted, 1 to 3650; empty: never",
    "plan": "name of a plan; only operators change it",
}
"""What each setting means, beside its field."""


# --- settings, members, limits


async def settings(console: Console, viewer: Viewer, params: Params) -> dict[str, Any] | None:
    account_id, system = params["id"], console.system
    if not is_account_id(account_id) or not viewer.may(account_id, Right.ADMINISTER):
        return None
    found = await system.administration.show(account_id)
    if isinstance(found, NoAccount):
        return None
    names = [name for name in SETTABLE if viewer.person.is_operator or name not in BY_OPERATORS]
    return {
        "title": f"Settings of {account_id}",
        "id": account_id,
        "fields": [(name, _text(_stored(found.settings, name)), HINTS.get(name, "")) for name in names],
        "members": sorted(found.members.items()),
        "roles": [role.value for role in Role],
        "parked": found.settings.get("parkedBecause"),
        "limits": await _limits(console, account_id, found.settings),
    }


def _stored(fields: Mapping[str, Any], name: str) -> Any:
    top, _, rest = name.partition(".")
    value = fields.get(top)
    return value if not rest else _stored(value, rest) if isinstance(value, Mapping) else None


def _text(value: Any) -> str:
    """As a person writes it: a string as it is, anything else as JSON."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)


def value_of(text: str) -> Any:
    """None: the default comes back."""
    text = text.strip()
    if not text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


async def _limits(console: Console, account_id: str, data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is in force, in words. A plan's use costs a read for each thousand messages that it counts."""
    system = console.system
    known = system.settings
    account = parse_account(account_id, data, per_minute=known.per_minute, concurrency=known.send_concurrency)
    if not isinstance(account, Account):
        return [("Account", account.sentence)]
    cap, between = account.cap, account.per_recipient
    rows = [
        ("Pace", "no limit" if cap is None else f"{timedelta(minutes=1) / cap.interval:,.6g} messages a minute"),
        ("One recipient", f"every {between.total_seconds():g} s" if between else "no limit"),
        ("At once", f"{account.concurrency} calls to the provider"),
    ]
    now = system.clock()
    plan = plan_of(plans(known.plans), account.plan.at(now))
    if plan is None or not plan.is_limited:
        return [*rows, ("Plan", "none with a limit")]
    usage = await Counts(system.gateway).of(account_id, plan, now)
    used = [f"{usage.sent[since]:,} of {most:,} sent" for since, most in plan.windows(now).items()]
    return [*rows, ("Plan", f"{plan.name}: {'; '.join(used)}")]


async def _set(console: Console, person: Person, subject: Subject, form: Form) -> Outcome:
    """The form has every setting; the check compares, and only what differs is changed."""
    back = f"/accounts/{subject.id}/settings"
    asked = {name: value_of(form[name]) for name in SETTABLE if name in form}
    if not person.is_operator and (kept := sorted(BY_OPERATORS & asked.keys())):
        return not_done(f"only operators change {', '.join(kept)}", back)
    changed = await console.system.administration.set(subject.id, asked, by=person.uid)
    if isinstance(changed, NoAccount):
        return not_done(f"there is no account {subject.id}", back)
    if isinstance(changed, Refused):
        return not_done(f"nothing is changed: {changed.sentence}", back)
    if not changed.changes:
        return not_done("everything is as asked for already", back)
    return Outcome(sentence=f"Changed: {', '.join(changed.changes)}.", to=back)


async def _member(console: Console, person: Person, subject: Subject, form: Form) -> Outcome:
    back, uid, given = f"/accounts/{subject.id}/settings", form.get("uid", "").strip(), form.get("role", "")
    if given not in ("", *Role):
        return not_done("say which role", back)
    role = Role(given) if given else None
    before = await console.system.administration.set_member(subject.id, uid, role, by=person.uid)
    if isinstance(before, NoAccount):
        return not_done(f"there is no account {subject.id}", back)
    if isinstance(before, Refused):
        return not_done(before.sentence, back)
    sentence = f"{uid} is no member any more." if role is None else f"{uid} is {role.value} of {subject.id} now."
    return Outcome(sentence=sentence, to=back)


async def _check(console: Console, person: Person, subject: Subject, form: Form) -> Outcome:
    """Whether the stored secrets work, as the provider says. Their values stay where they are."""
    route = await console.system.accounts.route(subject.id)
    provider = "" if route is None else route.provider
    checked = await console.system.providers.check_stored(provider, subject.id, limit=CHECK_LIMIT)
    return Outcome(sentence=f"{subject.id}: {checked.detail}.", is_done=checked.works is not False)


# --- the phone


async def phone(console: Console, viewer: Viewer, params: Params) -> dict[str, Any] | None:
    """The code lets its reader send as the account: owners and operators alone see it."""
    account_id = params["id"]
    if not is_account_id(account_id) or not viewer.may(account_id, Right.ADMINISTER):
        return None
    gateway, current, code = console.system.gateway, current_path(account_id), code_path(account_id)
    found = await gateway.get_all([f"accounts/{account_id}", current, code])
    if f"accounts/{account_id}" not in found:
        return None
    state = found[current].data.get("state") if current in found else SessionState.DISCONNECTED.value
    text = found[code].data.get("code") if code in found and state == SessionState.SCAN else None
    return {
        "title": f"Phone of {account_id}",
        "id": account_id,
        "state": str(state),
        "code": drawn(text) if isinstance(text, str) and text else None,
    }


def drawn(code: str) -> Markup:
    """As SVG, black on white in dark mode, too: phones do not read it otherwise."""
    svg: str = segno.make(code, error="l", micro=False).svg_inline(scale=4, light="#fff")
    return Markup(svg)  # segno draws modules; nothing of the code's text is in it


def _ask(verb: str) -> Do:
    async def do(console: Console, person: Person, subject: Subject, form: Form) -> Outcome:
        back = f"/accounts/{subject.id}/phone"
        shown = await console.system.connect(
            subject.id, "connect" if verb == "connect" else "disconnect", by=person.uid
        )
        if isinstance(shown, NoAccount):
            return not_done(f"there is no account {subject.id}", back)
        if isinstance(shown, Refused):
            return not_done(shown.sentence, back)
        sentence = "The code comes in a moment." if verb == "connect" else "The phone is unlinked."
        return Outcome(sentence=sentence, to=back)

    return do


_ACCOUNT = account_with(Right.ADMINISTER)
SCREENS = (
    Screen(
        path="/accounts/{id}/settings",
        template="account_settings.html",
        title="Settings",
        section="now",
        load=settings,
        is_live=False,
    ),
    Screen(path="/accounts/{id}/phone", template="phone.html", title="Phone", section="now", load=phone, every=FAST),
)
DEEDS = (
    Deed(action="set", path="/accounts/{id}/settings", find=_ACCOUNT, do=_set, notes_itself=True),
    Deed(
        action="member",
        path="/accounts/{id}/members",
        find=_ACCOUNT,
        do=_member,
        notes_itself=True,
    ),
    Deed(
        action="connect",
        path="/accounts/{id}/connect",
        find=_ACCOUNT,
        do=_ask("connect"),
        notes_itself=True,
    ),
    Deed(
        action="disconnect",
        path="/accounts/{id}/disconnect",
        find=_ACCOUNT,
        do=_ask("disconnect"),
        notes_itself=True,
    ),
    Deed(action="account.check", path="/accounts/{id}/check", find=_ACCOUNT, do=_check),
)
