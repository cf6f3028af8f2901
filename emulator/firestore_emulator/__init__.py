"""Firestore and Cloud Tasks on this machine, for any project: a command, a pytest plugin, and nothing to import."""

__version__ = "0.2.0"
