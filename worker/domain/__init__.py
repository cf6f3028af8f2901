"""The decisions, pure: state, a time and a random number in; a decision out.

Nothing here does I/O, reads a clock or draws a random number. Stores call these functions inside a transaction body,
which may run more than once, so they must give the same answer to the same question. The theory is in docs/lane.md.
"""
