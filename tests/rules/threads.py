"""Cases: the thread's own document. It names no message, so the rules look at it by itself."""

from __future__ import annotations

from typing import Any

from tests.rules.actions import Act, Case, Edit, in_thread, left_out, send, stored_as, without
from tests.rules.people import AGENT, GUEST, NEWCOMER, OWNER, SIGNED_OUT, STRANGER, VIEWER
from tests.rules.scene import NEW_CONTACT, OLD_CONTACT
from tests.rules.sending import CLIENTS_TIME


def thread(*edits: Edit, **options: Any) -> Act:
    """The thread's part of a batch alone."""
    return send(left_out("message"), *edits, left_out("outbox"), **options)


PEOPLE = {
    "an owner": (OWNER, True),
    "an agent": (AGENT, True),
    "a viewer": (VIEWER, False),
    "a member with an unknown role": (GUEST, False),
    "a member of another account": (STRANGER, False),
    "a user with no account": (NEWCOMER, False),
    "a signed-out user": (SIGNED_OUT, False),
}

SHOWN: dict[str, Edit] = {
    "the client's time": in_thread(lastMessageAt=CLIENTS_TIME),
    "a time that is no time": in_thread(lastMessageAt="now"),
    "201 characters to show": in_thread(lastMessageText="x" * 201),
    "a number to show": in_thread(lastMessageText=5),
    "a list to show": in_thread(lastMessageText=["x"]),
    "an unread message": in_thread(unreadCount=1),
    "an unread count that is no whole number": in_thread(unreadCount=0.0),
    "another field": in_thread(color="red"),
    "another field while it is marked as read": in_thread(color="red", unreadCount=0),
}

NEW: dict[str, Act] = {
    **{
        f"without {name}": thread(without("thread", name))
        for name in ("accountId", "to", "lastMessageAt", "lastMessageText")
    },
    "for an account with a slash": thread(in_thread(accountId="a/b")),
    "for an account that is no text": thread(in_thread(accountId=7)),
    "for an account of 129 characters": thread(account=lambda scene: "a" * 129),
    "for an account with two underscores": thread(account=lambda scene: f"{scene.account}__x"),
    "for an account that is not in its name": thread(in_thread(accountId="other")),
    "for an account that does not exist": thread(account=lambda scene: f"{scene.account}x"),
    "for a recipient that is not in its name": thread(in_thread(to="+1")),
    "for a recipient with a blank": thread(to="+49 151"),
    "for a recipient that begins with an underscore": thread(to="_1"),
    "for a recipient that is no text": thread(in_thread(to=["+1"])),
    "under another name": thread(stored_as("thread", lambda scene: f"{scene.thread(NEW_CONTACT)}1")),
}

CASES = [
    *(
        Case(f"{who} {'makes' if allowed else 'does not make'} a thread", person, thread(), allowed)
        for who, (person, allowed) in PEOPLE.items()
    ),
    *(
        Case(f"{who} {'moves' if allowed else 'does not move'} a thread up", person, thread(to=OLD_CONTACT), allowed)
        for who, (person, allowed) in PEOPLE.items()
    ),
    *(Case(f"no thread is made {what}", AGENT, act, allowed=False) for what, act in NEW.items()),
    *(Case(f"no thread is made with {what}", AGENT, thread(edit), allowed=False) for what, edit in SHOWN.items()),
    *(
        Case(f"no thread is moved up with {what}", AGENT, thread(edit, to=OLD_CONTACT), allowed=False)
        for what, edit in SHOWN.items()
    ),
]
