"""What Now says of today's cost comes from the one table of prices."""

from __future__ import annotations

import re
from pathlib import Path

from firestore_outbox.operations.overview import DOLLARS_A_MILLION

DEPLOY = Path(__file__).parents[3] / "docs" / "deploy.md"


def test_a_message_costs_what_the_table_of_the_deployment_sums_up_to() -> None:
    found = re.search(r"\*\*sum\*\*.*?\*\*([\d.]+)\*\* \| \*\*([\d.]+)\*\*", DEPLOY.read_text())
    assert found is not None
    assert tuple(float(number) for number in found.groups()) == DOLLARS_A_MILLION
