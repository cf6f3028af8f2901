"""Rates that all instances share: 3 calls a second to an API, on any number of workers (docs/limits.md)."""
