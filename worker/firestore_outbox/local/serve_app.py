"""`python -m firestore_outbox.local.serve_app functions PORT`: our functions on a port, until SIGTERM."""

from __future__ import annotations

import sys

from firestore_outbox.local.announced import serve


def main() -> None:
    name, port = sys.argv[1], int(sys.argv[2])
    if name != "functions":
        raise SystemExit(f"there is no application {name!r}")
    from firestore_outbox.local.functions_host import app

    serve(app(), port)


if __name__ == "__main__":
    main()
