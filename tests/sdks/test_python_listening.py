"""Listeners of google-cloud-firestore's blocking client. They call back in a thread of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.sdks.people import where
from tests.sdks.views import Views

Client = Any


def contents(snapshots: Any) -> str:
    return " ".join(f"{one.id}:{one.get('x')}" for one in snapshots if one.exists)


def watching(views: Views) -> Callable[[Any, Any, Any], None]:
    """The callback that a listener takes."""

    def tell(snapshots: Any, changes: Any, read_time: Any) -> None:
        views.add(contents(snapshots))

    return tell


def test_a_document_is_watched_from_before_it_exists_until_it_is_gone(db: Client) -> None:
    views, document = Views(), db.document("c/a")
    watch = document.on_snapshot(watching(views))
    try:
        views.wait_for("")
        document.set({"x": 1})
        views.wait_for("a:1")
        document.update({"x": 2})
        views.wait_for("a:2")
        document.delete()
        views.wait_for("")
    finally:
        watch.unsubscribe()
    assert views.all == ["", "a:1", "a:2", ""]


def test_a_query_tells_what_comes_changes_and_goes(db: Client) -> None:
    views, collection = Views(), db.collection("c")
    kinds: list[list[str]] = []

    def tell(snapshots: Any, changes: Any, read_time: Any) -> None:
        kinds.append([f"{change.type.name} {change.document.id}" for change in changes])
        views.add(contents(snapshots))

    watch = collection.where(filter=where("x", ">", 0)).order_by("x").on_snapshot(tell)
    try:
        views.wait_for("")
        collection.document("a").set({"x": 1})
        views.wait_for("a:1")
        collection.document("b").set({"x": 2})
        views.wait_for("a:1 b:2")
        collection.document("a").set({"x": 3})
        views.wait_for("b:2 a:3")
        collection.document("b").set({"x": -1})
        views.wait_for("a:3")
        collection.document("a").delete()
        views.wait_for("")
    finally:
        watch.unsubscribe()
    assert kinds == [[], ["ADDED a"], ["ADDED b"], ["MODIFIED a"], ["REMOVED b"], ["REMOVED a"]]


def test_a_limited_query_is_filled_up_from_what_was_outside(db: Client) -> None:
    views, collection = Views(), db.collection("c")
    for number, document_id in enumerate("abc", start=1):
        collection.document(document_id).set({"x": number})
    watch = collection.order_by("x").limit(2).on_snapshot(watching(views))  # this client sorts no descending order
    try:
        views.wait_for("a:1 b:2")
        collection.document("a").delete()
        views.wait_for("b:2 c:3")
        collection.document("d").set({"x": 0})
        views.wait_for("d:0 b:2")
    finally:
        watch.unsubscribe()


def test_several_listeners_each_see_their_own_and_the_one_that_stopped_nothing_more(db: Client) -> None:
    everything, some, gone = Views(), Views(), Views()
    collection = db.collection("c")
    watches = [
        collection.order_by("x").on_snapshot(watching(everything)),
        collection.where(filter=where("x", ">", 1)).on_snapshot(watching(some)),
        collection.order_by("x").on_snapshot(watching(gone)),
    ]
    try:
        for views in (everything, some, gone):
            views.wait_for("")
        watches[2].unsubscribe()
        collection.document("a").set({"x": 1})
        collection.document("b").set({"x": 2})
        everything.wait_for("a:1 b:2")
        some.wait_for("b:2")
    finally:
        for watch in watches[:2]:
            watch.unsubscribe()
    assert gone.all == [""]
