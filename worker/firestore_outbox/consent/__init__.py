"""Consent: who asked for no more messages of runs, and how they are kept out."""
