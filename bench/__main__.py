"""Every measurement that fits into about ten minutes, one after the other, then the charts and the tables.

    python -m bench [--with-growth]

A measurement that misses its bar does not keep the others from running; in the end all that did are named, and it
fails.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from bench.report import say

MEASUREMENTS = ("cost", "idle", "lanes", "queries", "latency", "throughput")
"""Those with processor time in them last: by then the machine is warm."""
AFTERWARDS = ("charts", "readme")


def main() -> int:
    parser = argparse.ArgumentParser(description="Every measurement, then the charts and the tables.")
    parser.add_argument("--with-growth", action="store_true", help="also the backlog of a million: minutes more")
    options = parser.parse_args()
    failed = []
    for name in (*MEASUREMENTS, *(["growth"] if options.with_growth else []), *AFTERWARDS):
        began = time.monotonic()
        say(f"== bench.{name}")
        if subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False).returncode:
            failed.append(name)
        say(f"== bench.{name}: {time.monotonic() - began:.0f} s")
    if failed:
        say(f"not good: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
