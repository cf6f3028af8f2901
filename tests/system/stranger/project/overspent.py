"""A test that spends more than its budget: `pytest overspent.py` fails, and says with which calls."""

import stock


def test_listing_titles_is_cheap(firestore_emulator, firestore_project, firestore_client, firestore_budget):
    books = ["emma", "ivanhoe", "waverley"]
    firestore_emulator.seed({f"books/{book}": {"title": book.title()} for book in books}, firestore_project)
    firestore_budget(reads=1)
    assert stock.titles_one_by_one(firestore_client, books) == ["Emma", "Ivanhoe", "Waverley"]
