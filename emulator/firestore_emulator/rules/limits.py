"""The limits of the language, as Google's emulator enforces them."""

from __future__ import annotations

MAX_SOURCE_BYTES = 256 * 1024
"""Production's limit for a ruleset; Google's emulator takes more."""

MAX_EXPRESSIONS = 1_000
"""Expressions that may be evaluated for one document, over all conditions that are tried for it."""

MAX_ACCESSES = 10
"""Distinct documents that one operation may ask for with get, exists, getAfter and existsAfter."""

MAX_BATCH_ACCESSES = 20
"""The same, for all operations of one commit, batch or query together."""

MAX_EXPRESSION_DEPTH = 99
"""Operators, calls and brackets inside each other."""

MAX_CALL_DEPTH = 20
"""Functions that may call each other below the first."""

MAX_LETS = 11
"""Google's message says 10 and its emulator takes 11."""

MAX_ARGUMENTS = 7
