"""Names: what a document, a collection and a database may be called."""

from __future__ import annotations

import pytest

from tests.conformance.backends import Backend, refused
from tests.conformance.wire import REQUESTS, delete, query, set_


@pytest.mark.parametrize(
    "path",
    [
        "c/...",
        "c/__",
        "c/___",
        "c/__x",
        "c/x__",
        "c/__id7__",
        "c/__id-7__",
        "c/a b",
        "c/é😀",
        "c/a%2Fb",
        "c/a*",
        "c/a\n",
        "c/\x00",
        "c/(default)",
        "documents/documents",
        "c/" + "a" * 1500,
        "c" * 1500 + "/a",
        "/".join("a" * 200),
    ],
    ids=lambda path: repr(path)[:20],
)
async def test_a_document_may_have_nearly_any_name(backend: Backend, path: str) -> None:
    await backend.seed({path: {"x": 1}})
    assert (await backend.get(path)).name == backend.name(path)
    collection, _, _ = path.rpartition("/")
    parent, _, collection = collection.rpartition("/")
    assert await backend.paths(query(collection), parent=parent) == [path]


@pytest.mark.parametrize(
    "path",
    [
        "",
        "c",
        "c/",
        "c/a/",
        "c/a/b",
        "c//a",
        "/a",
        "//",
        "c/.",
        "c/..",
        "./a",
        "../a",
        "c/__x__",
        "__x__/a",
        "__id7__/a",
        "c/a/__x__/b",
        "c/__id__",
    ],
)
async def test_a_malformed_path_is_refused_everywhere(backend: Backend, path: str) -> None:
    with refused("INVALID_ARGUMENT"):
        await backend.seed({path: {}})
    with refused("INVALID_ARGUMENT"):
        await backend.commit(delete(backend.name(path)))
    with refused("INVALID_ARGUMENT"):
        await backend.get(path)
    with refused("INVALID_ARGUMENT"):
        await backend.call(
            "BatchGetDocuments",
            REQUESTS["BatchGetDocuments"](database=backend.database, documents=[backend.name(path)]),
        )


@pytest.mark.parametrize(
    "path",
    ["c/" + "a" * 1501, "c/" + "é" * 751, "c" * 1501 + "/a", "/".join("a" * 202)],
    ids=["id", "id in bytes", "collection", "depth"],
)
async def test_a_name_that_is_too_long_is_not_written(backend: Backend, path: str) -> None:
    with refused("INVALID_ARGUMENT"):
        await backend.seed({path: {}})
    with refused("INVALID_ARGUMENT", "NOT_FOUND"):
        await backend.get(path)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x",
        "c/a",
        "/projects/p/databases/(default)/documents/c/a",
        "projects/p",
        "projects/p/databases",
        "projects/p/databases/(default)",
        "projects/p/databases/(default)/documents",
        "projects/p/databases/(default)/documents/",
        "projects/p/databases/(default)/docs/c/a",
        "projects/p/bases/(default)/documents/c/a",
        "projects//databases/(default)/documents/c/a",
        "projects/p/databases//documents/c/a",
    ],
)
async def test_a_name_that_is_not_whole_is_refused(backend: Backend, name: str) -> None:
    with refused("INVALID_ARGUMENT"):
        await backend.commit(set_(name, {}))
    with refused("INVALID_ARGUMENT"):
        await backend.call("GetDocument", REQUESTS["GetDocument"](name=name))
    with refused("INVALID_ARGUMENT"):
        await backend.call("DeleteDocument", REQUESTS["DeleteDocument"](name=name))


@pytest.mark.parametrize(
    "database",
    [
        "",
        "x",
        "projects/p",
        "projects/p/databases/",
        "projects/p/databases/(default)/documents",
        "projects//databases/x",
    ],
)
async def test_a_malformed_database_is_refused_everywhere(backend: Backend, database: str) -> None:
    for method in ("Commit", "BeginTransaction", "BatchGetDocuments", "BatchWrite"):
        with refused("INVALID_ARGUMENT"):
            await backend.call(method, REQUESTS[method](database=database))
    with refused("INVALID_ARGUMENT"):
        await backend.call("Rollback", REQUESTS["Rollback"](database=database, transaction=b"x"))


@pytest.mark.parametrize("kind", ["collection", "document"])
async def test_ids_that_cannot_be_written_as_they_are_are_escaped(backend: Backend, kind: str) -> None:
    """`~1` is a slash, `~2` a dot in an id of dots alone, `~0` a tilde beside one of them."""
    below = "c/{}" if kind == "document" else "{}/a"
    good = ["__esc~2__", "__esc~2~2__", "__esc.~1__", "__esc~1__", "__esc~1~0__", "__esca~1b__"]
    for segment in good:
        await backend.commit(set_(backend.name(below.format(segment)), {"x": 1}))
        assert await backend.exists(below.format(segment))
    bad = ("__esc__", "__esc1__", "__esc~0__", "__esc~3__", "__esc~__", "__esc~2a__", "__esc__~1____", "__ESC~1__")
    for segment in bad:
        with refused("INVALID_ARGUMENT"):
            await backend.commit(set_(backend.name(below.format(segment)), {}))
    found = await backend.paths(query("c" if kind == "document" else None))
    assert found == [below.format(segment) for segment in good], "in the order of what they stand for"
    assert await backend.paths(query(good[-1])) == ([] if kind == "document" else [f"{good[-1]}/a"])
    longest = f"__esc{'~1' * 1500}__"
    await backend.commit(set_(backend.name(below.format(longest)), {}))
    with refused("INVALID_ARGUMENT"):
        await backend.commit(set_(backend.name(below.format(f"__esc{'~1' * 1501}__")), {}))
