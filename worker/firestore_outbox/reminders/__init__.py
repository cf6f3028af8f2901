"""Fan-out: reminders that fire, and runs whose targets are outbox documents (docs/fan-out.md)."""
