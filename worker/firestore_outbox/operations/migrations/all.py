"""Every migration, oldest first. An entry is removed one release after the last document of its old form can exist."""

from __future__ import annotations

from firestore_outbox.operations.migrations.decision import Migration
from firestore_outbox.operations.migrations.lane_shard import LANE_SHARD
from firestore_outbox.operations.migrations.provider_number import PROVIDER_NUMBER

MIGRATIONS: tuple[Migration, ...] = (PROVIDER_NUMBER, LANE_SHARD)
