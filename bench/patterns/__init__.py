"""How others empty an outbox on Firestore, written as their authors describe it, for a look side by side.

Each drains the same documents with the real client library, and tells the seconds that it spent waiting for its next
poll. What they leave out is their choice and to their advantage here: where the authors keep one document for a
message, one is written; events are handed over in memory, without a function's start or a request.
"""
