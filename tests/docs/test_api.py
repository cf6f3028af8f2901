"""docs/api.md describes the public API as the code has it."""

from __future__ import annotations

import firestore_outbox
from tests.docs.api import PAGE, page, public_names


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make api"


def test_the_page_has_every_public_name_and_each_name_is_described() -> None:
    text = PAGE.read_text(encoding="utf-8")
    names = [public.name for public in public_names()]
    assert {*names, "__version__"} == set(firestore_outbox.__all__)
    for name in names:
        section = text.partition(f"\n### {name}\n")[2].partition("\n##")[0]
        assert len(section.strip().splitlines()) > 1, name
