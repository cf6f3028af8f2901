"""The judgement of advisories, with reports of our own making in the tools' forms."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import pytest

from tests.supply_chain.advisories import (
    LONGEST_ACCEPTANCE_DAYS,
    Accepted,
    Audit,
    Finding,
    Unreachable,
    accepted_in,
    judge,
    of_npm_audit,
    of_pip_audit,
    unused,
)
from tests.supply_chain.audit import ACCEPTED, audited

TODAY = date(2026, 11, 18)
OLD = Finding(
    package="oldlib", version="1.0", advisory="PYSEC-1", fixed_in=("1.1",), aliases=frozenset({"GHSA-a", "CVE-1"})
)
PIP: dict[str, Any] = {
    "dependencies": [
        {"name": "good", "version": "2.0", "vulns": []},
        {
            "name": "oldlib",
            "version": "1.0",
            "vulns": [
                {"id": "PYSEC-1", "fix_versions": ["1.1"], "aliases": ["GHSA-a", "CVE-1"], "description": "a hole"}
            ],
        },
        {"name": "private", "skip_reason": "not found"},
    ],
    "fixes": [],
}
NPM: dict[str, Any] = {
    "auditReportVersion": 2,
    "vulnerabilities": {
        "holey": {
            "name": "holey",
            "severity": "high",
            "via": [{"source": 7, "url": "https://advisories.example/GHSA-b", "range": "<3.0.0"}],
            "range": "<3.0.0",
        },
        "above": {"name": "above", "severity": "high", "via": ["holey"], "range": "*"},
    },
    "metadata": {"dependencies": {"total": 12}},
}


def accepted(**changes: Any) -> Accepted:
    return Accepted(**{"advisory": "CVE-1", "package": "oldlib", "until": TODAY, "reason": "not reached", **changes})


def test_a_finding_counts_unless_it_is_accepted_for_now() -> None:
    assert judge([OLD], [], TODAY).problems == ["oldlib 1.0: PYSEC-1 (fixed in 1.1)"]
    for advisory in ("PYSEC-1", "GHSA-a", "CVE-1"):
        verdict = judge([OLD], [accepted(advisory=advisory)], TODAY)
        assert (verdict.problems, len(verdict.accepted)) == ([], 1)
    for other in (accepted(package="another"), accepted(advisory="CVE-2")):
        assert len(judge([OLD], [other], TODAY).problems) == 1


def test_the_day_after_its_date_an_accepted_finding_counts_again() -> None:
    (problem,) = judge([OLD], [accepted()], TODAY + timedelta(days=1)).problems
    assert "accepted until 2026-11-18: not reached" in problem


def test_a_date_far_away_is_no_date() -> None:
    far = accepted(until=TODAY + timedelta(days=LONGEST_ACCEPTANCE_DAYS + 1))
    assert len(judge([OLD], [far], TODAY).problems) == 1


def test_an_entry_that_no_finding_needs_is_named() -> None:
    assert unused([OLD], [accepted(), accepted(advisory="CVE-2")]) == ["CVE-2"]


def test_the_report_of_pip_audit_is_read() -> None:
    assert of_pip_audit(PIP) == Audit(findings=[OLD], checked=2, unchecked=["private"])


def test_a_report_in_which_everything_was_skipped_is_no_clean_report() -> None:
    skipped = {"dependencies": [{"name": "good", "skip_reason": "not found"}], "fixes": []}
    for report in (skipped, {}, None):
        with pytest.raises(Unreachable):
            of_pip_audit(report)


def test_the_report_of_npm_audit_is_read_and_a_refusal_is_none() -> None:
    found = Finding(package="holey", version="<3.0.0", advisory="GHSA-b")
    assert of_npm_audit(NPM) == Audit(findings=[found], checked=12)
    with pytest.raises(Unreachable, match="405"):
        of_npm_audit({"message": "405 Method Not Allowed - POST somewhere", "statusCode": 405})


@pytest.mark.parametrize("entry", ['until = "soon"\nreason = "r"', 'until = 2026-11-18\nreason = " "'])
def test_an_accepted_advisory_needs_a_date_and_a_reason(entry: str) -> None:
    with pytest.raises(ValueError, match="needs a date and a reason"):
        accepted_in(f'[[accepted]]\nadvisory = "A"\npackage = "p"\n{entry}\n')
    accepted_in(ACCEPTED.read_text())


def _run(pip: object, npm: object) -> Any:
    def run(command: Sequence[str]) -> str:
        report = npm if command[0] == "npm" else pip
        return report if isinstance(report, str) else json.dumps(report)

    return run


def test_what_could_not_be_checked_is_said_and_the_rest_is_still_judged() -> None:
    verdict, missing = audited(_run(PIP, "<html>"))
    assert [line.partition(":")[0] for line in verdict.problems] == ["oldlib 1.0"]
    assert missing == [
        "private was not checked: the data does not have it",
        "the Node packages were not checked: npm audit printed no report; the registry does not answer",
    ]
