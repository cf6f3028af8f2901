"""The limits of the language, as Google's emulator enforces them."""

from __future__ import annotations

MAX_SOURCE_BYTES = 256 * 1024
"""Production's limit for a ruleset; Google's emulator takes more."""

MAX_EXPRESSIONS = 1_000
"""Expressions for one document, over all conditions that are tried for it."""

MAX_ACCESSES = 10
"""Distinct documents that one operation may read with get, exists, getAfter and existsAfter."""

MAX_BATCH_ACCESSES = 20
"""The same, for all operations of one commit, batch or query together."""

MAX_EXPRESSION_DEPTH = 99
"""Operators, calls and brackets inside each other."""

MAX_CALL_DEPTH = 20
"""Function calls below the first one."""

MAX_LETS = 11
"""In one function. Google's message says 10, and its emulator accepts 11."""

MAX_ARGUMENTS = 7
