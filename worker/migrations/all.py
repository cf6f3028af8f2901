"""Every migration, oldest first. An entry is removed one release after the last document of its old form can exist."""

from __future__ import annotations

from worker.migrations.decision import Migration
from worker.migrations.provider_number import PROVIDER_NUMBER

MIGRATIONS: tuple[Migration, ...] = (PROVIDER_NUMBER,)
