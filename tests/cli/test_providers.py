"""`outbox providers list`: what is built in, what packages add, and what is wrong with one that cannot be used."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from firestore_outbox import __version__
from tests.cli.support import COMMAND, outbox
from tests.patience import PATIENCE_SECONDS

ADAPTER = Path(__file__).parents[2] / "examples" / "adapter"
FAULTY = {
    "broken": "def provider(tools):\n    raise RuntimeError('no feathers')\n",
    "missing": "",
    "absent": "import a_library_that_is_not_installed\n",
    "mute": "def provider(tools):\n    return 'a pigeon'\n",
}


def install(folder: Path, name: str, target: str) -> None:
    """As pip leaves it: metadata that names the entry point, beside the module."""
    metadata = folder / f"{name}_outbox-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-outbox\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[firestore_outbox.providers]\n{name} = {target}:provider\n")


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    (tmp_path / "acme_outbox.py").write_text((ADAPTER / "acme_outbox.py").read_text(encoding="utf-8"))
    install(tmp_path, "acme", "acme_outbox")
    for name, source in FAULTY.items():
        (tmp_path / f"{name}_outbox.py").write_text(source)
        install(tmp_path, name, f"{name}_outbox")
    install(tmp_path, "waha", "acme_outbox")
    return tmp_path


def listed(packages: Path, *words: str) -> str:
    """By a process of its own: each looks for installed packages once."""
    done = subprocess.run(
        [str(COMMAND), "providers", "list", *words],
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_built_in_providers_are_listed_with_what_they_can_do() -> None:
    rows = {row["provider"]: row for row in outbox("providers", "list", "--json").json}
    assert {"interakt", "signed_webhook", "simulated", "waha", "whatsapp_cloud"} <= set(rows)
    waha = rows["waha"]
    assert (waha["builtIn"], waha["package"], waha["fault"]) == (True, f"firestore-outbox {__version__}", None)
    assert waha["profile"]["partTypes"] == ["media", "text"]
    assert (waha["profile"]["media"], waha["profile"]["resendSafe"]) == ("link_or_inline", False)
    assert rows["signed_webhook"]["profile"]["resendSafe"] is True
    needed = {one["name"]: one["required"] for one in waha["profile"]["credentials"]}
    optional = {"session": False, "media": False}
    assert needed == {"baseUrl": True, "apiKey": True, "webhookSecret": True, **optional}


def test_the_table_has_a_row_for_each_provider() -> None:
    heading, *rows = outbox("providers", "list").out.splitlines()
    assert " ".join(heading.split()) == "provider package takes media same key twice echoes our id credentials"
    (signed,) = [row for row in rows if row.startswith("signed_webhook ")]
    assert "delivered once" in signed
    assert signed.rstrip().endswith("url, signingSecret, [webhookSecret]")


def test_an_installed_adapter_is_listed_with_its_package(packages: Path) -> None:
    rows: list[dict[str, Any]] = json.loads(listed(packages, "--json"))
    (acme,) = [row for row in rows if row["provider"] == "acme"]
    assert (acme["builtIn"], acme["package"], acme["fault"]) == (False, "acme-outbox 1.0", None)
    assert [one["name"] for one in acme["profile"]["credentials"]] == ["apiKey", "webhookSecret"]


def test_an_adapter_that_cannot_be_used_is_a_row_with_its_fault(packages: Path) -> None:
    rows = [line for line in listed(packages).splitlines() if "-outbox 1.0 " in line and "acme-outbox" not in line]
    faults = {line.split()[0]: line for line in rows}
    assert set(faults) == {*FAULTY, "waha"}
    assert "failed: RuntimeError: no feathers" in faults["broken"]
    assert "failed: AttributeError" in faults["missing"]
    assert "failed: ModuleNotFoundError: No module named 'a_library_that_is_not_installed'" in faults["absent"]
    assert "returned a str; it must return a firestore_outbox.Provider" in faults["mute"]
    assert "has the name of another provider" in faults["waha"]
