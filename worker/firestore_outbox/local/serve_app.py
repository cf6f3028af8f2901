"""`python -m emulator.serve_app functions PORT`: an application of ours on a port, until SIGTERM."""

from __future__ import annotations

import sys

import uvicorn

from firestore_emulator.stack import HOST


def main() -> None:
    name, port = sys.argv[1], int(sys.argv[2])
    if name != "functions":
        raise SystemExit(f"there is no application {name!r}")
    from firestore_outbox.local.functions_host import app

    class Announcing(uvicorn.Server):
        async def startup(self, sockets=None) -> None:  # type: ignore[no-untyped-def]  # uvicorn's own signature
            await super().startup(sockets)
            print(f"ready  http://{HOST}:{port}", flush=True)

    config = uvicorn.Config(app(), host=HOST, port=port, log_level="warning", access_log=False, timeout_keep_alive=30)
    Announcing(config).run()


if __name__ == "__main__":
    main()
