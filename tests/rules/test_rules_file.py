"""`--rules FILE`, and refusals that explain themselves: what our emulator has and Google's has not."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.pytest_plugin import unsigned_token
from firestore_emulator.rules.file import RulesFile
from firestore_emulator.rules.guard import Guard, RulesFileError
from firestore_emulator.storage.engine import Engine
from tests.patience import PATIENCE_SECONDS

ROOT = "/v1/projects/p/databases/(default)/documents"
BOB = {"authorization": f"Bearer {unsigned_token({'sub': 'bob', 'role': 'viewer'})}"}
RULES = """rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    function isClerk() {
      return request.auth.token.role == 'clerk';
    }
    match /papers/{id} {
      allow get: if isClerk() && resource.data.open == true;
    }
  }
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "firestore.rules"
    file.write_text(RULES)
    return file


@pytest_asyncio.fixture(loop_scope="session")
async def emulator(file: Path) -> AsyncIterator[FirestoreEmulator]:
    emulator = FirestoreEmulator(rules=file)
    await emulator.start()
    yield emulator
    await emulator.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def http(emulator: FirestoreEmulator) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=emulator.http_app)
    async with httpx.AsyncClient(transport=transport, base_url="http://ours") as client:
        yield client


async def test_a_refusal_says_which_condition_was_false_and_what_it_saw(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        answer = await http.get(f"{ROOT}/papers/1", headers=BOB)
    assert answer.status_code == 403
    expected = [
        "get papers/1 by user bob is refused by the security rules",
        "line 8: allow get: false",
        "  line 8: isClerk() is false",
        "    line 5: request.auth.token.role == 'clerk' is false, with request.auth.token.role = 'viewer'",
    ]
    assert answer.json()["error"]["message"].splitlines() == expected
    assert "\n".join(expected) in caplog.text
    (told,) = (await http.get("/emulator/v1/projects/p:ruleRefusals")).json()["refusals"]
    assert (told["method"], told["path"], told["uid"], told["reasons"]) == ("get", "papers/1", "bob", expected[1:])


async def test_the_command_prints_a_refusal(file: Path) -> None:
    command = Path(sys.executable).parent / "firestore-emulator"
    process = await asyncio.create_subprocess_exec(
        *(str(command), "--port=0", "--tasks-port=0", "--json", f"--rules={file}"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            address = json.loads(await process.stdout.readline())["FIRESTORE_EMULATOR_HOST"]
            async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as client:
                assert (await client.get(f"http://{address}{ROOT}/papers/1", headers=BOB)).status_code == 403
            first, second = [(await process.stderr.readline()).decode() for _ in range(2)]
    finally:
        process.kill()
        await process.wait()
    assert first == "get papers/1 by user bob is refused by the security rules\n"
    assert second == "line 8: allow get: false\n"


async def test_a_refusal_says_why_a_condition_failed(http: httpx.AsyncClient) -> None:
    answer = await http.get(f"{ROOT}/papers/1")
    message = answer.json()["error"]["message"]
    assert "by a caller without a token" in message
    assert "Property token is undefined on a null" in message


async def test_a_path_that_no_rule_covers_is_refused_as_such(http: httpx.AsyncClient) -> None:
    answer = await http.get(f"{ROOT}/letters/1", headers=BOB)
    assert "No matching allow statements" in answer.json()["error"]["message"]


async def test_conditions_that_are_nested_too_deeply_refuse(
    emulator: FirestoreEmulator, http: httpx.AsyncClient
) -> None:
    functions = "".join(f"function f{number}() {{ return {'!' * 90}f{number + 1}(); }}" for number in range(10))
    emulator.guard.load(
        RULES.replace("function isClerk", f"{functions} function f10() {{ return true; }}\nfunction isClerk").replace(
            "isClerk() &&", "f0() &&"
        )
    )
    answer = await http.get(f"{ROOT}/papers/1", headers=BOB)
    assert answer.status_code == 403
    assert "nested too deeply" in answer.json()["error"]["message"]


async def test_half_a_surrogate_pair_is_shown_as_a_question_mark(http: httpx.AsyncClient) -> None:
    content = RULES.replace("isClerk() &&", "'\\ud83d' == request.auth.uid || '\ud83d' in [id] || ")
    body = {"rules": {"files": [{"name": "firestore.rules", "content": content}]}}
    loaded = await http.put(
        "/emulator/v1/projects/p:securityRules", content=json.dumps(body), headers={"content-type": "application/json"}
    )
    assert loaded.status_code == 200
    answer = await http.get(f"{ROOT}/papers/1", headers=BOB)
    assert answer.status_code == 403
    assert "'?' in [id] is false" in answer.json()["error"]["message"]
    for what in ("ruleCoverage", "securityRules"):
        shown = await http.get(f"/emulator/v1/projects/p:{what}")
        assert "'?' in [id]" in shown.json()["rules"]["files"][0]["content"]


async def test_a_file_that_changes_is_loaded_again(
    emulator: FirestoreEmulator, http: httpx.AsyncClient, file: Path
) -> None:
    assert (await http.get(f"{ROOT}/papers/1", headers=BOB)).status_code == 403
    loaded = asyncio.Event()
    emulator.guard.on_change.append(loaded.set)
    await asyncio.to_thread(file.write_text, RULES.replace("isClerk() && resource.data.open == true", "true"))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await loaded.wait()
    assert (await http.get(f"{ROOT}/papers/1", headers=BOB)).status_code == 404


def test_a_file_that_stops_compiling_leaves_the_earlier_rules(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine()
    guard = Guard(engine)
    rules = RulesFile(file, guard)
    before = guard.loaded("p")
    file.write_text("service {")
    rules.look()
    assert "The rules before stay in force" in caplog.text
    assert guard.loaded("p") is before
    file.write_text(RULES + "\n")
    rules.look()
    assert guard.loaded("p") is not before
    engine.close()


@pytest.mark.parametrize(
    ("content", "message"), [("service {", "L1:9 Unexpected '{'"), (None, "the security rules cannot be read")]
)
def test_an_emulator_does_not_start_with_a_file_that_is_wrong(
    tmp_path: Path, content: str | None, message: str
) -> None:
    file = tmp_path / "wrong.rules"
    if content is not None:
        file.write_text(content)
    with pytest.raises(RulesFileError, match=message.replace("{", r"\{")):
        FirestoreEmulator(rules=file)
