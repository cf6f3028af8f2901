"""The browser of this machine."""

from __future__ import annotations

import shutil

import pytest

from tests.client.node import require_node

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def require_chromium() -> str:
    """Chromium and what drives it, or the test is left out with the reason."""
    require_node()
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium: install chromium")
    return found
