"""`outbox media add`: a file onto the storage, and its mediaId printed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.cli.support import outbox
from tests.media.fake_storage import BUCKET, fake_storage


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    file = tmp_path / "cat.png"
    file.write_bytes(b"meow")
    return file


MEDIA_ID = hashlib.sha256(b"meow").hexdigest()


def env(**names: str) -> dict[str, str | None]:
    return {"OUTBOX_MEDIA_DIR": None, "OUTBOX_MEDIA_BUCKET": None, **names}


def test_add_puts_a_file_into_storage_and_prints_its_media_id(tmp_path: Path, picture: Path) -> None:
    storage = tmp_path / "storage"
    said = outbox("media", "add", "--account=shop", str(picture), env=env(OUTBOX_MEDIA_DIR=str(storage)))
    assert (said.code, said.out) == (0, f"{MEDIA_ID}\n")
    about = b'{"mimeType": "image/png", "filename": "cat.png"}'
    assert {file: file.read_bytes() for file in storage.rglob("*") if file.is_file()} == {
        storage / "shop" / MEDIA_ID: b"meow",
        storage / "shop" / f"{MEDIA_ID}%about": about,
    }
    assert (
        outbox("media", "add", "--account=shop", str(picture), env=env(OUTBOX_MEDIA_DIR=str(storage))).out == said.out
    )


def test_add_speaks_json(tmp_path: Path, picture: Path) -> None:
    said = outbox("media", "add", "--account=shop", str(picture), "--json", env=env(OUTBOX_MEDIA_DIR=str(tmp_path)))
    assert said.json == {
        "accountId": "shop",
        "mediaId": MEDIA_ID,
        "mimeType": "image/png",
        "bytes": 4,
        "at": str(tmp_path / "shop" / MEDIA_ID),
    }


def test_add_puts_a_file_into_the_bucket_with_its_type_and_name(picture: Path) -> None:
    with fake_storage() as storage:
        names = env(OUTBOX_MEDIA_BUCKET=BUCKET, STORAGE_EMULATOR_HOST=storage.address)
        said = outbox("media", "add", "--account=shop", str(picture), "--json", env=names)
        stored = storage.objects[f"media/shop/{MEDIA_ID}"]
    assert said.json["at"] == f"gs://{BUCKET}/media/shop/{MEDIA_ID}"
    assert (stored.content, stored.content_type, stored.metadata) == (b"meow", "image/png", {"filename": "cat.png"})


def test_a_bucket_that_cannot_be_reached_is_said_in_a_sentence(picture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from firestore_outbox.media import bucket

    monkeypatch.setattr(bucket, "TRIES_SECONDS", 0.2)
    names = env(OUTBOX_MEDIA_BUCKET=BUCKET, STORAGE_EMULATOR_HOST="http://127.0.0.1:1")
    said = outbox("media", "add", "--account=shop", str(picture), env=names)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"outbox: gs://{BUCKET} cannot be used")


@pytest.mark.parametrize(
    ("content", "names", "words"),
    [
        (b"meow", {}, "set OUTBOX_MEDIA_BUCKET, or OUTBOX_MEDIA_DIR on one machine"),
        (b"", {"OUTBOX_MEDIA_DIR": "x"}, "is empty"),
        (
            bytes(200_000),
            {"OUTBOX_MEDIA_DIR": "x", "OUTBOX_MEDIA_MAX_MB": "0.1"},
            "has 0.2 MB; the limit is 0.1 MB (OUTBOX_MEDIA_MAX_MB)",
        ),
        (b"meow", {"OUTBOX_MEDIA_DIR": "x", "OUTBOX_MEDIA_BUCKET": "y"}, "set one of them"),
        (b"meow", {"OUTBOX_MEDIA_DIR": "/dev/null/x"}, "/dev/null/x cannot be used"),
    ],
    ids=["no place", "empty", "too large", "two places", "no directory"],
)
def test_what_cannot_be_added_is_said_in_a_sentence(
    tmp_path: Path, content: bytes, names: dict[str, str], words: str
) -> None:
    file = tmp_path / "cat.png"
    file.write_bytes(content)
    said = outbox("media", "add", "--account=shop", str(file), env=env(**names))
    assert (said.code, said.out) == (1, "")
    assert words in said.err


def test_a_file_of_an_unknown_type_needs_to_be_told(tmp_path: Path) -> None:
    file = tmp_path / "cat.unheard-of"
    file.write_bytes(b"meow")
    names = env(OUTBOX_MEDIA_DIR=str(tmp_path / "storage"))
    said = outbox("media", "add", "--account=shop", str(file), env=names)
    assert said.code == 2
    assert "--type" in said.err
    assert outbox("media", "add", "--account=shop", str(file), "--type", "image/png", env=names).code == 0


def test_the_command_explains_itself() -> None:
    said = outbox("media", "add", "--help")
    assert said.code == 0
    assert "--json" in said.out
    assert "mediaId" in said.out
