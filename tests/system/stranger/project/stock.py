"""The stock of a bookshop: what a user of the emulator has under test."""

from google.cloud import firestore


def titles(db: firestore.Client) -> list[str]:
    """All titles, with one query."""
    return [book.get("title") for book in db.collection("books").order_by("title").stream()]


def titles_one_by_one(db: firestore.Client, books: list[str]) -> list[str]:
    """The same with a read for each book, which costs more than it has to."""
    return [db.document(f"books/{book}").get().get("title") for book in books]


def sell(db: firestore.Client, book: str) -> int:
    """Takes one copy from the stock. Returns how many are left."""

    @firestore.transactional
    def take(transaction: firestore.Transaction) -> int:
        reference = db.document(f"books/{book}")
        left = int(reference.get(transaction=transaction).get("copies")) - 1
        transaction.update(reference, {"copies": left})
        return left

    return take(db.transaction())
