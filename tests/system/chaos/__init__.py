"""Proof by faults: real processes, killed, paused, cut off and put out of time, and an account of every message."""
