"""The simulator as a process, until SIGTERM or Ctrl-C: `--port N --webhook URL_TEMPLATE [--data FILE]`."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

from firestore_outbox.clock import system_clock
from firestore_outbox.local.file_server import FileServer
from firestore_outbox.local.kms import KmsStandIn
from firestore_outbox.local.provider_urls import LOCAL_STRIPE_SECRET
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET, HOST, ProviderSimulator
from firestore_outbox.local.simulators.webhooks import BadTemplate
from firestore_outbox.local.stripe.api import StripeStandIn

SECRET_VARIABLE = "OUTBOX_SIMULATED_WEBHOOK_SECRET"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m emulator.providers", description="A provider simulator.")
    parser.add_argument("--port", type=int, default=8083, help="0 takes a free one")
    parser.add_argument(
        "--webhook", metavar="URL", help="where receipts go: a URL with {provider} and {accountId} in it"
    )
    parser.add_argument("--data", type=Path, metavar="FILE", help="keep the record of calls in this file")
    parser.add_argument("--kms", type=Path, metavar="FILE", help="serve a stand-in for Cloud KMS, with its keys here")
    parser.add_argument("--files", type=Path, metavar="DIR", help="serve the files of a directory, and take uploads")
    parser.add_argument("--billing", metavar="URL", help="serve a stand-in for Stripe, whose events go there")
    return parser.parse_args()


async def _run(arguments: argparse.Namespace) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    secret = os.environ.get(SECRET_VARIABLE, DEFAULT_SECRET)
    others = [] if arguments.kms is None else KmsStandIn(arguments.kms).routes()
    others += [] if arguments.files is None else FileServer(arguments.files).routes()
    if arguments.billing is not None:
        others += StripeStandIn(arguments.billing, LOCAL_STRIPE_SECRET, system_clock).routes()
    async with ProviderSimulator(
        webhook=arguments.webhook, secret=secret, data=arguments.data, others=others
    ) as simulator:
        try:
            await simulator.start(port=arguments.port)
        except OSError as error:
            raise SystemExit(
                f"port {arguments.port} on {HOST} cannot be used ({error.strerror}); choose another with --port"
            ) from None
        print(f"ready  {simulator.url}", flush=True)
        await stop.wait()


def main() -> None:
    try:
        asyncio.run(_run(_arguments()))
    except BadTemplate as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
