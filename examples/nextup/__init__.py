"""Rank each person's tasks when something about them changes (README.md)."""
