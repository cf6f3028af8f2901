"""`outbox dev` with a tap on each wire between its processes, and nothing else changed.

No sweep comes to the rescue: a message whose event or task is lost stays where it is, and the test fails.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

from firestore_outbox.local.dev import DevSettings, DevStack
from tests.system.endtoend.tap import Tap

NEVER_SECONDS = 86_400.0


def settings(*, official: bool, short_turns: bool) -> DevSettings:
    return DevSettings(
        firestore_port=0,
        tasks_port=0,
        functions_port=0,
        worker_port=0,
        provider_port=0,
        page_port=0 if official else None,
        official=official,
        sweep_seconds=NEVER_SECONDS,
        environment={"OUTBOX_LOG_LEVEL": "WARNING", "OUTBOX_SHORT_TURNS": str(int(short_turns))},
    )


class TappedStack(DevStack):
    """Every part gets the taps' addresses in place of the functions', the worker's and the provider's."""

    def __init__(self, settings: DevSettings) -> None:
        super().__init__(settings)
        self._taps = AsyncExitStack()
        self.to_functions = Tap(lambda: self.ports["functions"])
        self.to_worker = Tap(lambda: self.ports["worker"])
        self.to_provider = Tap(lambda: self.ports["provider"])

    @property
    def _functions(self) -> str:
        return self.to_functions.address

    @property
    def worker_url(self) -> str:
        return f"http://{self.to_worker.address}"

    @property
    def provider_url(self) -> str:
        return f"http://{self.to_provider.address}"

    async def __aenter__(self) -> TappedStack:
        for tap in (self.to_functions, self.to_worker, self.to_provider):
            await self._taps.enter_async_context(tap)
        try:
            await super().__aenter__()
        except BaseException:
            await self._taps.aclose()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await super().__aexit__(*exc)
        await self._taps.aclose()
