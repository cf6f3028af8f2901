"""The wheels of both distributions, built once for a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.packaging.wheels import build_wheel


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    base = tmp_path_factory.mktemp("wheels")
    built = [build_wheel(source, base) for source in ("worker", "emulator")]
    return {wheel.name.partition("-")[0]: wheel for wheel in built}
