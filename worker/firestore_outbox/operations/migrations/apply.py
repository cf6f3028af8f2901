"""Runs a migration over its collection: page by page, each document under the version that was read, resumable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, assert_never

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.compare_and_set import AGAIN, Again, Contended
from firestore_outbox.firestore.gateway import Conflict, Gateway, Snapshot
from firestore_outbox.firestore.writes import DELETE, update, upsert
from firestore_outbox.operations.audit.pages import pages
from firestore_outbox.operations.migrations.decision import Change, Decision, Document, Keep, Migration, Undecided
from firestore_outbox.providers.credentials import CredentialResolver, Credentials

PAGE = 300
LISTED = 1_000
"""Changes kept for the report, to bound its memory; `changed` counts all of them."""


@dataclass(slots=True, kw_only=True)
class Report:
    """What a run did, or with `dry_run` what it would do."""

    name: str
    direction: str
    """`forward` or `back`."""
    dry_run: bool
    resumed_after: str | None = None
    """The document after which this run began, because the run before broke off there."""
    seen: int = 0
    changed: int = 0
    changes: list[dict[str, Any]] = field(default_factory=list)
    """The first of them: path and fields; None for a field that is removed."""
    undecided: list[dict[str, str]] = field(default_factory=list)
    """Documents that a person has to look at: path and reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applying:
    gateway: Gateway
    credentials: CredentialResolver
    clock: Callable[[], datetime]
    page: int = PAGE

    async def apply(
        self,
        migration: Migration,
        *,
        back: bool = False,
        dry_run: bool = False,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> Report:
        decide = migration.back if back else migration.forward
        if decide is None:
            raise ValueError(f"the migration {migration.name} has no way back")
        report = Report(name=migration.name, direction="back" if back else "forward", dry_run=dry_run)
        if not dry_run:
            report.resumed_after = await self._cursor(migration, report.direction)
        async for page in pages(self.gateway, migration.collection, after=report.resumed_after, size=self.page):
            for snapshot in page:
                await self._one(migration, decide, snapshot, report)
            on_progress(len(page))
            if page and not dry_run:
                await self._note(migration, report, cursor=page[-1].path)
        if not dry_run:
            await self._note(migration, report, cursor=None)
        return report

    async def _one(
        self, migration: Migration, decide: Callable[[Document], Decision], snapshot: Snapshot, report: Report
    ) -> None:
        report.seen += 1
        found: Snapshot | None = snapshot

        async def attempt() -> Again | None:
            nonlocal found
            if found is None:
                return None  # deleted meanwhile
            secrets = await self.credentials.resolve(found.id) if migration.reads_credentials else Credentials()
            decision = decide(Document(path=found.path, fields=found.data, credentials=secrets))
            match decision:
                case Keep():
                    return None
                case Undecided():
                    report.undecided.append({"path": found.path, "because": decision.because})
                    return None
                case Change():
                    if report.dry_run or await self._written(found, decision.fields):
                        _list(report, found.path, decision.fields)
                        return None
                case _:
                    assert_never(decision)
            found = await self.gateway.get(snapshot.path)
            return AGAIN

        try:
            await self.gateway.compare_and_set(attempt)
        except Contended:
            because = "it changes all the time; run the migration again"
            report.undecided.append({"path": snapshot.path, "because": because})

    async def _written(self, snapshot: Snapshot, fields: Mapping[str, Any]) -> bool:
        """False if the document changed since it was read. A lost answer is settled by the decision after it."""
        done = await self.gateway.commit([update(snapshot.path, fields, version=snapshot.version)])
        return not isinstance(done, Conflict)

    async def _cursor(self, migration: Migration, direction: str) -> str | None:
        stored = await self.gateway.get(paths.migration(migration.name))
        if stored is None or stored.data.get("direction") != direction:
            return None
        cursor = stored.data.get("cursor")
        return cursor if isinstance(cursor, str) else None

    async def _note(self, migration: Migration, report: Report, *, cursor: str | None) -> None:
        now = self.clock()
        fields = {
            "direction": report.direction,
            "cursor": DELETE if cursor is None else cursor,
            "finishedAt": now if cursor is None else DELETE,
            "updatedAt": now,
        }
        await self.gateway.commit([upsert(paths.migration(migration.name), fields)])


def _list(report: Report, path: str, fields: Mapping[str, Any]) -> None:
    report.changed += 1
    if len(report.changes) < LISTED:
        shown = {name: None if value is DELETE else value for name, value in fields.items()}
        report.changes.append({"path": path, "fields": shown})
