"""`make sbom`: every locked package is in the bill of materials, with its version and its hashes."""

from __future__ import annotations

import json
import re
from pathlib import Path

from packaging.utils import canonicalize_name

from tests.client.node import require_node
from tests.supply_chain.sbom import ROOT, node_bill, python_bill


def test_every_package_that_is_deployed_is_in_the_bill(tmp_path: Path) -> None:
    python_bill(tmp_path / "worker.cdx.json")
    bill = json.loads((tmp_path / "worker.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    listed = {(canonicalize_name(one["name"]), one["version"]): one for one in bill["components"]}
    locked = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert {(canonicalize_name(name), version) for name, version in locked} == set(listed)
    for one in listed.values():
        assert one["purl"].startswith("pkg:pypi/")
        assert one["externalReferences"], "its hashes stand with the references to its files"


def test_every_package_of_the_web_client_is_in_the_bill(tmp_path: Path) -> None:
    require_node()
    node_bill(tmp_path / "client.cdx.json")
    bill = json.loads((tmp_path / "client.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    listed = {(one.get("group", ""), one["name"]) for one in bill["components"]}
    lock = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    # An alias has the package's own name beside it.
    packages = [(path, entry) for path, entry in lock.items() if path and not entry.get("link")]
    wanted = {entry.get("name") or path.rpartition("node_modules/")[2] for path, entry in packages}
    names = {f"{group}/{name}" if group else name for group, name in listed}
    assert {name for name in wanted if not name.startswith("client")} - names == set()
