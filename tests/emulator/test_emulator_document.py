"""The examples of docs/emulator.md, run as they stand there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from firestore_emulator.pytest_plugin import RunningEmulator, serving
from tests.client.node import require_node
from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/emulator.md").read_text(encoding="utf-8")


def block(language: str, holding: str) -> str:
    """The example in this language that has this word in it."""
    (found,) = [text for text in re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.M | re.S) if holding in text]
    return str(found)


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    with serving() as host:
        yield host


@pytest.fixture
def host(served: str) -> str:
    """With nothing in the project that all examples use."""
    RunningEmulator(host=served, project="demo").clear()
    return served


def said_by(command: list[str], host: str, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        command,
        cwd=cwd,
        # Node's library looks for Google's own machines unless told that this is none.
        env=environment | {"FIRESTORE_EMULATOR_HOST": host, "METADATA_SERVER_DETECTION": "none"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_python_example_works(host: str, tmp_path: Path) -> None:
    assert said_by([sys.executable, "-c", block("python", "db.collection")], host, tmp_path) == "['hello']\n"


@pytest.mark.parametrize("library", ["@google-cloud/firestore", "firebase/firestore/lite"])
def test_the_node_examples_work(host: str, library: str) -> None:
    name, _, port = host.partition(":")
    script = block("js", library).replace("HOST, PORT", f"{json.dumps(name)}, {port}")
    # Both libraries keep a connection open for a while after the last word.
    script += "\nprocess.exit(0);"
    said = said_by([require_node(), "--input-type=module", "--eval", script], host, ROOT)
    assert said == "[ 'hello' ]\n"


def test_the_pytest_example_works(host: str, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    (tmp_path / "test_words.py").write_text(block("python", "test_a_word_is_kept"))
    said = said_by([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], host, tmp_path)
    assert "1 passed" in said


def test_the_example_of_a_budget_works(host: str, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    (tmp_path / "test_words.py").write_text(block("python", "firestore_budget"))
    said = said_by([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], host, tmp_path)
    assert "1 passed" in said


def test_the_curl_example_works(host: str, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl")
    answers = said_by(["bash", "-euc", block("sh", "curl")], host, tmp_path)
    decoder, read = json.JSONDecoder(), []
    while answers.strip():
        answer, end = decoder.raw_decode(answers.strip())
        read.append(answer)
        answers = answers.strip()[end:]
    created, patched, found, cleared = read
    assert created["fields"] == {"length": {"integerValue": "5"}}
    assert patched["fields"] == {"length": {"integerValue": "5"}, "seen": {"booleanValue": True}}
    assert [answer["document"]["name"] for answer in found] == [created["name"]]
    assert cleared == {}


def test_every_option_of_both_commands_is_in_the_table(tmp_path: Path) -> None:
    folder = Path(sys.executable).parent
    helps = [[str(folder / "outbox"), "emulator", "--help"], [str(folder / "firestore-emulator"), "--help"]]
    given = {option for command in helps for option in re.findall(r"--[a-z-]+", said_by(command, "none", tmp_path))}
    table = TEXT.partition("| option |")[2].partition("\n\n")[0]
    assert set(re.findall(r"--[a-z-]+", table)) - {"---"} == given - {"--help", "--version"}


def test_the_container_starts_it_with_options_that_it_has_and_publishes_its_usual_ports(tmp_path: Path) -> None:
    dockerfile = (ROOT / "emulator/Dockerfile").read_text(encoding="utf-8")
    command = [part for line in ("ENTRYPOINT", "CMD") for part in json.loads(_instruction(dockerfile, line))]
    help_ = said_by([str(Path(sys.executable).parent / command[0]), "--help"], "none", tmp_path)
    options = {part for part in command if part.startswith("--")}
    assert options == {"--host", "--data"}
    assert options <= set(re.findall(r"--[a-z-]+", help_))
    assert [tuple(_instruction(dockerfile, "EXPOSE").split())] == re.findall(r"by default (\d+) and (\d+)", TEXT)


def _instruction(dockerfile: str, name: str) -> str:
    (found,) = re.findall(rf"^{name} (.*)$", dockerfile, re.M)
    return str(found)


def test_its_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", TEXT):
        assert (ROOT / "docs" / target).exists(), target
