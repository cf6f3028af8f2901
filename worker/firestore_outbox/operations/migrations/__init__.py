"""Changes of documents that exist, from the form of one release to the form of the next: `outbox migrate`.

A migration is a named entry of `all.py`. Its decision is pure: a document's fields go in, the fields to change come
out. `apply.py` reads the collection page by page, writes each change under the version that it read, and keeps a cursor
in `migrations/{name}`, so that a run that broke off goes on where it stopped. Every migration can run again at any
time: a document that has its new form already is left alone. docs/upgrading.md says when to run them.
"""
