"""`outbox erase`: nothing of an address or of a removed account is left, and nothing of others is touched."""

from __future__ import annotations

from tests.cli.support import Stack, until

THEIRS, OTHERS = "+491701", "+491702"


def conversation(stack: Stack, account: str, to: str) -> list[str]:
    """Paths of a message that was sent, with its thread."""
    request_id = stack.send(account, to=to)
    stack.becomes(request_id, "sent")
    thread = f"threads/{account}__{to}"
    return [f"outbox/{request_id}", thread, f"{thread}/messages/{request_id}"]


def there(stack: Stack, paths: list[str]) -> list[str]:
    return [path for path in paths if stack.read(path)]


def test_one_address_is_erased_and_the_others_stay(stack: Stack) -> None:
    account = stack.account()
    theirs, others = conversation(stack, account, THEIRS), conversation(stack, account, OTHERS)
    said = stack("erase", "--account", account, "--address", THEIRS, "--yes", "--json")
    assert said.code == 0, said
    assert said.json["deleted"] == {"outbox": 1, "messages": 1, "threads": 1}
    assert (there(stack, theirs), there(stack, others)) == ([], others)
    again = stack("erase", "--account", account, "--address", THEIRS, "--yes", "--json")
    assert (again.code, again.json["deleted"]) == (0, {})


def test_a_removed_account_is_erased_with_all_that_belongs_to_it(stack: Stack) -> None:
    account, neighbour = stack.account(), stack.account()
    ours, theirs = conversation(stack, account, THEIRS), conversation(stack, neighbour, THEIRS)
    assert stack("accounts", "members", account, "olga", "--role", "owner").code == 0
    refused = stack("erase", "--account", account, "--yes")
    assert (refused.code, "remove it first" in refused.err) == (1, True)
    assert there(stack, ours) == ours
    assert stack("accounts", "remove", account, "--yes").code == 0
    said = stack("erase", "--account", account, "--yes", "--json")
    assert said.code == 0, said
    assert said.json["deleted"] == {"outbox": 1, "messages": 1, "threads": 1, "actions": 1}
    assert said.json["files"] == 0
    assert (there(stack, [*ours, f"lanes/outbox:{account}"]), there(stack, theirs)) == ([], theirs)


def test_nothing_is_erased_without_a_yes(stack: Stack) -> None:
    account = stack.account()
    ours = conversation(stack, account, THEIRS)
    said = stack("erase", "--account", account, "--address", THEIRS)
    assert (said.code, "Nothing was changed" in said.err) == (1, True)
    assert there(stack, ours) == ours


def test_what_recipients_got_of_marketing_is_erased_with_the_address_and_with_the_account(stack: Stack) -> None:
    account = stack.account()
    assert stack("accounts", "set", account, "frequencyCap.messages=1", "frequencyCap.days=7").code == 0
    words = ("--text", "Sale", "--at", "now", "--window", "0-24", "--timezone", "UTC", "--category", "marketing")
    added = stack("reminders", "add", "--account", account, "--to", THEIRS, "--to", OTHERS, *words, "--json")
    assert added.code == 0, added
    until(
        lambda: stack("runs", "list", "--account", account, "--json").json,
        lambda rows: [row["status"] for row in rows] == ["success"],
        "the end of the run",
    )
    theirs, others = (f"accounts/{account}/frequency/{to.removeprefix('+')}" for to in (THEIRS, OTHERS))
    assert there(stack, [theirs, others]) == [theirs, others]
    assert stack("erase", "--account", account, "--address", THEIRS, "--yes").code == 0
    assert there(stack, [theirs, others]) == [others]
    assert stack("accounts", "remove", account, "--yes").code == 0
    said = stack("erase", "--account", account, "--yes", "--json")
    assert said.json["deleted"]["frequency"] == 1
    assert there(stack, [others]) == []
