"""Which suite runs in which tier: the one table.

    make test        fast: units, slices, a sample of the simulation, one browser path for each feature, one end to end
    make test-slow   slow: the rest, above all what runs on Google's emulator or kills processes for minutes

A row names a directory or a file below tests/, or one test of a file (`file.py::test_name`); `[backend]` behind it
narrows the row to the tests that run on that Firestore. The most specific row decides: the longest name, and of two
rows with one name the one with a backend. tests/architecture/test_tiers.py fails if a test file is in no row, or if a
row names nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum

PLACES = ("grpc", "inprocess", "official")
"""The Firestores that a test can run on (tests/conformance/backends.py)."""


class Tier(StrEnum):
    FAST = "fast"
    SLOW = "slow"


ROWS: Mapping[str, Tier] = {
    "accounts": Tier.FAST,
    "accounts/test_window.py::test_on_days_of_any_length_the_window_agrees_with_the_clock_on_the_wall": Tier.SLOW,
    "architecture": Tier.FAST,
    "backend": Tier.FAST,
    "billing": Tier.FAST,
    "billing/test_dev.py": Tier.SLOW,
    "backend[official]": Tier.SLOW,
    "bench": Tier.FAST,
    "bench/test_small.py": Tier.SLOW,
    "cli": Tier.FAST,
    "cli/test_commands.py::test_demo_ends_by_itself_with_nothing_lost_and_nothing_twice": Tier.SLOW,
    "cli/test_dev.py": Tier.SLOW,
    "cli/test_reminders.py": Tier.SLOW,
    "cli/test_terminal.py::test_ctrl_c_ends_the_demo_quietly": Tier.SLOW,
    "client": Tier.FAST,
    "client/test_package.py": Tier.SLOW,
    "client[official]": Tier.SLOW,
    "consent": Tier.FAST,
    "conformance": Tier.FAST,
    "conformance/test_differential.py": Tier.SLOW,
    "conformance[official]": Tier.SLOW,
    "deploy": Tier.FAST,
    "docs": Tier.FAST,
    "docs/test_on_the_stack.py::test_the_commands_of_the_page_print_what_it_says": Tier.SLOW,
    "emulator": Tier.FAST,
    "emulator/firestore/test_durability.py": Tier.SLOW,
    "emulator/firestore/test_serializable.py": Tier.SLOW,
    "emulator/tasks/test_durability.py": Tier.SLOW,
    "emulator/test_emulator_document.py::test_the_node_examples_work": Tier.SLOW,
    "emulator/test_emulator_document.py::test_the_example_of_a_budget_works": Tier.SLOW,
    "emulator/test_emulator_document.py::test_the_pytest_example_works": Tier.SLOW,
    "emulator/test_official.py": Tier.SLOW,
    "emulator/test_pytest_plugin.py": Tier.SLOW,
    "firestore": Tier.FAST,
    "firestore[official]": Tier.SLOW,
    "inbound": Tier.FAST,
    "inbound/webhooks/test_mutations.py": Tier.SLOW,
    "examples": Tier.SLOW,
    "examples/test_nextup_ranking.py": Tier.FAST,
    "examples/test_nextup_notion.py": Tier.FAST,
    "handlers": Tier.FAST,
    "health": Tier.FAST,
    "indexes": Tier.FAST,
    "indexes/test_indexes.py::test_fields_that_grow_with_time_are_not_indexed_by_themselves": Tier.SLOW,
    "indexes/test_indexes.py::test_what_runs_asks_nothing_that_the_tour_does_not": Tier.SLOW,
    "lane": Tier.FAST,
    "limits": Tier.FAST,
    "limits/test_limit.py::test_eight_processes_together_never_exceed_the_rate": Tier.SLOW,
    "limits/test_sharing.py::test_eight_instances_use_the_whole_rate_for_five_minutes": Tier.SLOW,
    "media": Tier.FAST,
    "media/test_dev.py": Tier.SLOW,
    "media/test_once.py::test_200_messages_over_three_workers_are_one_upload": Tier.SLOW,
    "media[official]": Tier.SLOW,
    "messages": Tier.FAST,
    "notifications": Tier.FAST,
    "operations": Tier.FAST,
    "operations/migrations[official]": Tier.SLOW,
    "operations[official]": Tier.SLOW,
    "packaging": Tier.FAST,
    "packaging/test_example_adapter.py": Tier.SLOW,
    "packaging/test_wheels.py": Tier.SLOW,
    "plans": Tier.FAST,
    "plans/test_quota.py::test_with_kills_and_ten_workers_exactly_the_plan_is_sent": Tier.SLOW,
    "providers": Tier.FAST,
    "receipts": Tier.FAST,
    "reminders": Tier.FAST,
    "reminders/test_ahead.py": Tier.SLOW,
    "reminders/test_fanout.py": Tier.SLOW,
    "reminders/test_fanout_consent.py": Tier.SLOW,
    "reminders/test_forecast_met.py": Tier.SLOW,
    "reminders/test_runs.py::test_killed_at_any_moment_a_run_that_hits_its_window_has_the_same_totals": Tier.SLOW,
    "reminders/test_runs.py::test_two_runs_on_two_accounts_end_within_5_percent_of_one_alone": Tier.SLOW,
    "rules": Tier.FAST,
    "rules/test_differential_rules.py": Tier.SLOW,
    "rules/test_fuzz_rules.py": Tier.SLOW,
    "rules[official]": Tier.SLOW,
    "sdks": Tier.SLOW,
    "sealing": Tier.FAST,
    "sealing/test_planted.py": Tier.SLOW,
    "sending": Tier.FAST,
    "sending/test_many_holds.py": Tier.SLOW,
    "sessions": Tier.FAST,
    "sessions/test_hotset.py::test_workers_that_die_all_the_time_lose_nothing_and_never_exceed_the_places": Tier.SLOW,
    "sessions/test_shards.py::test_with_a_shard_for_each_slot_no_document_takes_more_than_a_write_a_second": Tier.SLOW,
    "sessions/test_shards.py::test_the_number_of_shards_changes_and_there_are_never_too_many_sessions": Tier.SLOW,
    "sessions/test_outbox.py::test_more_accounts_than_places_all_get_their_turn": Tier.SLOW,
    "sessions/test_outbox.py::test_the_session_is_not_started_for_a_message_that_is_due_tomorrow": Tier.SLOW,
    "sessions/test_outbox.py::test_the_session_is_not_started_for_a_paused_account": Tier.SLOW,
    "simulation": Tier.SLOW,
    "simulation/test_sample.py": Tier.FAST,
    "supply_chain": Tier.FAST,
    "supply_chain/test_sbom.py": Tier.SLOW,
    "supply_chain/test_vulnerabilities.py": Tier.SLOW,
    "system/acceptance": Tier.SLOW,
    "system/browser": Tier.FAST,
    "system/browser[official]": Tier.SLOW,
    "system/console": Tier.SLOW,
    "system/console/test_browser.py": Tier.FAST,
    "system/chaos": Tier.FAST,
    "system/chaos/test_chaos.py": Tier.SLOW,
    "system/chaos/test_overload.py": Tier.SLOW,
    "system/endtoend": Tier.SLOW,
    "system/endtoend/test_backend.py": Tier.FAST,
    "system/stranger": Tier.SLOW,
    "system/trace": Tier.SLOW,
    "system/handlers": Tier.SLOW,
    "system/newcomer": Tier.SLOW,
    "system/notifications": Tier.SLOW,
    "system/upgrade": Tier.SLOW,
    "web/console": Tier.FAST,
    "web/console/test_load.py": Tier.SLOW,
    "web/functions": Tier.FAST,
    "web/functions/test_dev_stack.py": Tier.SLOW,
    "web/service": Tier.FAST,
}

_ROW = re.compile(r"(?P<name>[^\[]+)(?:\[(?P<place>\w+)\])?")
_PLACE = re.compile(rf"[\[-]({'|'.join(PLACES)})[-\]]")


def place_of(test: str) -> str:
    """The Firestore in the name of a test that runs on several; empty for the other tests."""
    found = _PLACE.search(test)
    return found[1] if found else ""


def row_of(nodeid: str) -> str | None:
    """The row that decides over a test, given as pytest names it; None if no row does."""
    file, _, test = nodeid.removeprefix("tests/").partition("::")
    place = place_of(test)
    for name in _from_narrow_to_wide(file, test.partition("[")[0]):
        for row in (f"{name}[{place}]", name):
            if row in ROWS:
                return row
    return None


def tier_of(nodeid: str) -> Tier | None:
    row = row_of(nodeid)
    return None if row is None else ROWS[row]


def is_wholly_outside(file: str, tier: Tier) -> bool:
    """Whether no test of this file can be in the tier, so that the file need not be imported."""
    if tier_of(file) in (tier, None):
        return False
    above = set(_from_narrow_to_wide(file, ""))
    return not any(
        ROWS[row] is tier and (name in above or name.startswith(f"{file}::"))
        for row, (name, place) in parsed().items()
        if place or "::" in name
    )


def parsed() -> dict[str, tuple[str, str]]:
    """Each row's name and its backend, which is empty for a row that has none."""
    found = {}
    for row in ROWS:
        match = _ROW.fullmatch(row)
        assert match is not None, row
        found[row] = (match["name"], match["place"] or "")
    return found


def _from_narrow_to_wide(file: str, test: str) -> Iterator[str]:
    if test:
        yield f"{file}::{test}"
    parts = file.split("/")
    for count in range(len(parts), 0, -1):
        yield "/".join(parts[:count])
