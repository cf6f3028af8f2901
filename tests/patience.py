"""The one bound on real time in the tests.

It ends a test that hangs, with a message that says what did not come. Nothing else depends on it: a test that passes
never waits for it, and a loaded machine does not reach it. Speed is measured in bench/.
"""

from __future__ import annotations

PATIENCE_SECONDS = 240.0
"""Less than pytest's own timeout (pyproject.toml), so that the message of the test is the one shown."""
