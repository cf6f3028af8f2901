"""How deep a text is nested, told without a parser."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.providers.json_depth import DEEPEST, is_too_deep

_trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='[]{}"\\a'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='[]{}"\\a'), inner, max_size=3),
    max_leaves=20,
)


def depth(tree: Any) -> int:
    if isinstance(tree, dict):
        tree = list(tree.values())
    return 1 + max(map(depth, tree), default=0) if isinstance(tree, list) else 0


@given(tree=_trees, deepest=st.integers(1, 6))
def test_a_json_text_is_too_deep_when_its_tree_is(tree: Any, deepest: int) -> None:
    for text in (json.dumps(tree), json.dumps(tree, indent=1)):
        assert is_too_deep(text.encode(), deepest) == (depth(tree) > deepest)


@given(st.binary(max_size=200))
def test_any_bytes_are_reported(text: bytes) -> None:
    assert is_too_deep(text) in (True, False)


@pytest.mark.parametrize("text", [b"[", b"]", b"][", b"{}[", b'{"a": [}'])
def test_brackets_that_do_not_match_are_no_json_and_too_deep(text: bytes) -> None:
    assert is_too_deep(text)


def test_the_limit_is_exact() -> None:
    assert not is_too_deep(b"[" * DEEPEST + b"]" * DEEPEST)
    assert is_too_deep(b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1))


HOSTILE = {
    "brackets without end": b"[" * 1_000_000,
    "brackets with an end": b"[" * 500_000 + b"]" * 500_000,
    "pairs": b"[]" * 500_000,
    "a text without end": b'"' + b"x" * 1_000_000,
    "escapes without end": b'"' + b'\\"' * 500_000,
    "quotes": b'"' * 1_000_000,
    "backslashes": b'"' + b"\\" * 1_000_000,
    "as deep as allowed, again and again": (b"[" * 31 + b"]" * 31) * 16_000,
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_megabyte_takes_no_longer_than_a_friendly_one(case: str) -> None:
    started = time.process_time()
    is_too_deep(HOSTILE[case])
    assert time.process_time() - started < 1.0, "it should be some hundredths"
