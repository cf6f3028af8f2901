"""Texts that Google's own SDK suites look for. All other texts are each server's own; only their codes are compared."""

from __future__ import annotations

import pytest

from tests.conformance.backends import Backend, refused
from tests.conformance.wire import Proto, all_of, any_of, query, where

KEY_EQUALITY = (
    "Equality on key is not allowed if there are other inequality fields and key does not appear in inequalities."
)
KIND_FOR_ORDERS = "kind is required for all orders except __key__ ascending"


@pytest.mark.parametrize("operator", ["!=", "<", ">="])
async def test_an_equality_on_the_name_beside_another_inequality(backend: Backend, operator: str) -> None:
    named = where("__name__", "==", backend.ref("c/a"))
    listed = where("__name__", "in", [backend.ref("c/a"), backend.ref("c/b")])
    for filter_ in (all_of(named, where("x", operator, 1)), all_of(where("x", operator, 1), listed)):
        with refused("INVALID_ARGUMENT") as refusals:
            await backend.run(query("c", filter_))
        assert refusals[0].message == KEY_EQUALITY


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (query(None, where("x", "==", 1)), "kind is required for filter: x"),
        (query(None, any_of(where("m.k", ">", 1), where("y", "==", 1))), "kind is required for filter: m.k"),
        (query(None, order=["x"]), KIND_FOR_ORDERS),
        (query(None, order=["-__name__"]), KIND_FOR_ORDERS),
    ],
)
async def test_a_filter_or_an_order_without_a_collection(backend: Backend, asked: Proto, text: str) -> None:
    with refused("INVALID_ARGUMENT") as refusals:
        await backend.run(asked)
    assert refusals[0].message == text
