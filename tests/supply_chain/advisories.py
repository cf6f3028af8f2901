"""What is known against the locked packages, and what of it is accepted for now.

pip-audit and npm audit ask the registries' own data. This module reads their reports and judges them: a finding counts
unless the list of accepted ones names it, with a reason and a date. After that date it counts again.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

LONGEST_ACCEPTANCE_DAYS = 90
"""From today: a date further away is no date."""


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Finding:
    package: str
    version: str
    advisory: str
    fixed_in: tuple[str, ...] = ()
    aliases: frozenset[str] = frozenset()

    def __str__(self) -> str:
        fixed = f"fixed in {', '.join(self.fixed_in)}" if self.fixed_in else "no fix is known"
        return f"{self.package} {self.version}: {self.advisory} ({fixed})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What a tool reported."""

    findings: Sequence[Finding] = ()
    checked: int = 0
    """Packages whose advisories were seen."""
    unchecked: Sequence[str] = ()
    """Packages that the data does not have. They are neither good nor bad."""


class Unreachable(Exception):
    """The data could not be had; the sentence says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    advisory: str
    package: str
    until: date
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    problems: Sequence[str]
    """Empty: nothing is known that is not accepted."""
    accepted: Sequence[str] = ()


def of_pip_audit(report: object) -> Audit:
    """`pip-audit --format json`. A package that it skipped was not checked, though it then finds nothing."""
    entries = report.get("dependencies") if isinstance(report, Mapping) else None
    if not isinstance(entries, list):
        raise Unreachable("pip-audit printed no report")
    skipped = [entry["name"] for entry in entries if "skip_reason" in entry]
    if len(skipped) == len(entries):
        raise Unreachable("the Python index that is used here has no advisories: pip-audit skipped every package")
    findings = [
        Finding(
            package=entry["name"],
            version=entry["version"],
            advisory=found["id"],
            fixed_in=tuple(found.get("fix_versions", ())),
            aliases=frozenset(found.get("aliases", ())),
        )
        for entry in entries
        for found in entry.get("vulns", ())
    ]
    return Audit(findings=findings, checked=len(entries) - len(skipped), unchecked=skipped)


def of_npm_audit(report: object) -> Audit:
    """`npm audit --json`, version 2 of its report. An answer without `vulnerabilities` is an error of the registry."""
    found = report.get("vulnerabilities") if isinstance(report, Mapping) else None
    if not isinstance(report, Mapping) or not isinstance(found, Mapping):
        reason = report.get("message") if isinstance(report, Mapping) else None
        raise Unreachable(f"npm audit got no advisories ({str(reason or 'no report').partition(' - ')[0]})")
    total = report.get("metadata", {}).get("dependencies", {}).get("total", 0)
    return Audit(findings=sorted(set(_npm_findings(found))), checked=total)


def _npm_findings(found: Mapping[str, Any]) -> Iterator[Finding]:
    for name, entry in found.items():
        for via in entry.get("via", ()):
            if isinstance(via, Mapping):  # a string names another entry, through which this package is concerned
                advisory = str(via.get("url") or via.get("source")).rpartition("/")[2]
                yield Finding(package=name, version=str(via.get("range", "")), advisory=advisory)


def accepted_in(text: str) -> list[Accepted]:
    """A list in TOML. Raises ValueError for an entry that lacks something."""
    found = []
    for entry in tomllib.loads(text).get("accepted", []):
        one = Accepted(**entry)
        if not isinstance(one.until, date) or not str(one.reason).strip():
            raise ValueError(f"{one.advisory}: an accepted advisory needs a date and a reason")
        found.append(one)
    return found


def judge(findings: Sequence[Finding], accepted: Sequence[Accepted], today: date) -> Verdict:
    problems, passed = [], []
    for finding in findings:
        match = next((one for one in accepted if _is_about(one, finding)), None)
        if match is None:
            problems.append(str(finding))
        elif match.until < today:
            problems.append(f"{finding}; it was accepted until {match.until}: {match.reason}")
        else:
            passed.append(f"{finding}; accepted until {match.until}: {match.reason}")
    for one in accepted:
        if (one.until - today).days > LONGEST_ACCEPTANCE_DAYS:
            problems.append(f"{one.advisory} is accepted until {one.until}, more than {LONGEST_ACCEPTANCE_DAYS} days")
    return Verdict(problems=problems, accepted=passed)


def unused(findings: Sequence[Finding], accepted: Sequence[Accepted]) -> list[str]:
    """Entries that no finding needs any more; only known if all data was there."""
    return [one.advisory for one in accepted if not any(_is_about(one, finding) for finding in findings)]


def _is_about(one: Accepted, finding: Finding) -> bool:
    return one.package == finding.package and one.advisory in {finding.advisory, *finding.aliases}
