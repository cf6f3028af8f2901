"""Health of a number: how much it sends in a day, and when runs pause by themselves. Theory in docs/health.md."""
