"""How deep a JSON text is nested, without parsing it: a parser may pay for each level with a level of its own stack."""

from __future__ import annotations

import re

DEEPEST = 32
"""The real ones have about ten levels."""

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
"""One that is never closed reaches to the end, so no byte is looked at twice."""
_SAME = bytes.maketrans(b"{}", b"[]")
_NO_BRACKET = bytes(byte for byte in range(256) if byte not in b"[]{}")


def is_too_deep(text: bytes, deepest: int = DEEPEST) -> bool:
    """Also true for brackets that do not match, which is not JSON either. Each round takes the innermost pairs away."""
    brackets = _STRING.sub(b"", text).translate(_SAME, _NO_BRACKET)
    for _ in range(deepest):
        before, brackets = len(brackets), brackets.replace(b"[]", b"")
        if len(brackets) == before:  # none were left, or none that match
            break
    return bool(brackets)
