"""The bar of `make soak`: what levels off passes, what keeps growing does not, and noise decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from bench.flatness import Bar, flatness, growth

MINUTE = 60.0
BAR = Bar(share=0.02, least=3.0)


def series(value: Callable[[float], float], minutes: int = 30) -> list[tuple[float, float]]:
    return [(10.0 * n, value(10.0 * n)) for n in range(minutes * 6)]


def is_flat(value: Callable[[float], float], *, compare_levels: bool = False) -> bool:
    found = flatness(series(value), BAR, compare_levels=compare_levels)
    assert found is not None
    return found.is_flat


def test_what_grows_while_it_warms_up_and_then_stays_is_flat() -> None:
    assert is_flat(lambda at: min(150.0, 100 + at / 10))


def test_what_grows_at_an_even_pace_for_ever_is_not_flat() -> None:
    assert not is_flat(lambda at: 100 + at / MINUTE * 0.5)


def test_noise_and_a_few_outliers_decide_nothing() -> None:
    random = Random(1)
    assert is_flat(lambda at: 100 + random.gauss(0, 2) + (80 if random.random() < 0.05 else 0))


def test_a_slow_leak_is_found_under_the_same_noise() -> None:
    random = Random(1)
    assert not is_flat(lambda at: 100 + at / MINUTE * 0.8 + random.gauss(0, 2))


def test_a_lag_that_rose_from_one_level_to_another_is_not_flat_though_neither_third_grows() -> None:
    def step(at: float) -> float:
        return 100.0 if at < 20 * MINUTE else 110.0

    assert is_flat(step)
    assert not is_flat(step, compare_levels=True)


def test_what_shrinks_is_flat() -> None:
    assert is_flat(lambda at: 200 - at / MINUTE, compare_levels=True)


def test_a_run_that_is_too_short_tells_nothing() -> None:
    assert flatness(series(lambda at: 1.0, minutes=1), BAR, compare_levels=False) is None


def test_the_growth_is_that_of_the_whole_third() -> None:
    assert growth([(0.0, 1.0), (10.0, 2.0), (20.0, 3.0)]) == pytest.approx(2.0)
