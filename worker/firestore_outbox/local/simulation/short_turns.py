"""Worlds in which functions send messages that come alone, and what goes wrong with functions there.

Everything is drawn from sequences of their own, so that worlds without short turns stay what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random

SHARE = 2 / 3
"""Of the worlds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """A message that comes by itself."""

    at: float
    number: int
    account_id: str
    to: str
    is_followed: bool
    """Another one to the same recipient follows as soon as this one is acknowledged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTurnTroubles:
    crashes: tuple[tuple[float, int | None], ...]
    """Of functions: when, and after which number of steps of the victim; None: at once."""
    stalls: tuple[tuple[float, int | None, float], ...]
    """The same, and for how long. Beyond a minute the event's caller has given up."""
    late_event: float
    """The share of events and tasks that come late, and so in another order."""
    most_skew: timedelta
    """Of the functions' clocks."""


NO_TROUBLES = ShortTurnTroubles(crashes=(), stalls=(), late_event=0.0, most_skew=timedelta())


def has_short_turns(seed: int) -> bool:
    return Random(f"short turns {seed}").random() < SHARE


def draw_troubles(seed: int, lasts: float) -> ShortTurnTroubles:
    random = Random(f"short turns' troubles {seed}")
    times = sorted(random.uniform(0, lasts) for _ in range(5))
    crashes = tuple((at, _steps(random)) for at in times if random.random() < 0.5)
    stalls = tuple(
        (at, _steps(random), random.choice((3.0, 30.0, 62.0, 90.0))) for at in times if random.random() < 0.3
    )
    return ShortTurnTroubles(
        crashes=crashes if random.random() < 0.5 else (),
        stalls=stalls if random.random() < 0.4 else (),
        late_event=random.choice((0.0, 0.0, 0.3)),
        most_skew=timedelta(seconds=random.choice((0, 0, 2))),
    )


def _steps(random: Random) -> int | None:
    """A short turn takes some dozens of steps: most strikes fall into one."""
    return random.randrange(1, 120) if random.random() < 0.8 else None


def draw_alone(seed: int, account_ids: Sequence[str], lasts: float) -> list[Alone]:
    random = Random(f"alone {seed}")
    return [
        Alone(
            at=random.uniform(0, lasts * 0.9),
            number=number,
            account_id=random.choice(account_ids),
            to=f"+47{random.randrange(3)}",
            is_followed=random.random() < 0.3,
        )
        for number in range(random.choice((0, 6, 12)))
    ]
