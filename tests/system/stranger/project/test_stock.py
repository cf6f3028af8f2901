"""Budgets and snapshots, as a user writes them."""

import pytest
import stock

BOOKS = {"books/emma": {"title": "Emma", "copies": 2}, "books/ivanhoe": {"title": "Ivanhoe", "copies": 5}}


@pytest.fixture
def shop(firestore_emulator, firestore_project, firestore_client):
    firestore_emulator.seed(BOOKS, firestore_project)
    firestore_emulator.save("opening", firestore_project)
    return firestore_client


def test_listing_titles_is_one_query_over_two_books(shop, firestore_budget):
    firestore_budget(reads=2, writes=0, deletes=0)
    assert stock.titles(shop) == ["Emma", "Ivanhoe"]


def test_selling_a_book_reads_and_writes_it_once(shop, firestore_budget):
    with firestore_budget(reads=1, writes=1):
        assert stock.sell(shop, "emma") == 1


def test_a_saved_state_comes_back(shop, firestore_emulator, firestore_project):
    stock.sell(shop, "emma")
    shop.document("books/waverley").set({"title": "Waverley", "copies": 1})
    shop.document("books/ivanhoe").delete()
    firestore_emulator.restore("opening", firestore_project)
    assert stock.titles(shop) == ["Emma", "Ivanhoe"]
    assert stock.sell(shop, "emma") == 1
