"""The project's own tests are not tests of this repository: test_stranger.py runs them in a clean directory."""

from __future__ import annotations

collect_ignore = ["project"]
