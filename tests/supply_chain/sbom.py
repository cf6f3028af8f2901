"""`make sbom`: bills of materials in CycloneDX form, from the locks alone. Needs no network.

build/sbom/worker.cdx.json   what the image and the functions install, with hashes (requirements.txt)
build/sbom/client.cdx.json   what the web client is tested with (package-lock.json)
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WHERE = ROOT / "build" / "sbom"


def python_bill(to: Path) -> None:
    tool = [sys.executable, "-m", "cyclonedx_py", "requirements", "requirements.txt"]
    options = ["--pyproject", "worker/pyproject.toml", "--output-reproducible", "--output-format", "JSON"]
    subprocess.run([*tool, *options, "--output-file", str(to)], cwd=ROOT, check=True)


def node_bill(to: Path) -> None:
    tool = ["npm", "sbom", "--sbom-format=cyclonedx", "--package-lock-only"]
    with to.open("w", encoding="utf-8") as file:
        subprocess.run(tool, cwd=ROOT, stdout=file, check=True)


def main() -> None:
    WHERE.mkdir(parents=True, exist_ok=True)
    python_bill(WHERE / "worker.cdx.json")
    node_bill(WHERE / "client.cdx.json")
    print(f"{WHERE.relative_to(ROOT)}: {', '.join(sorted(file.name for file in WHERE.iterdir()))}")


if __name__ == "__main__":
    main()
