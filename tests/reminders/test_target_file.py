"""Files of targets as people keep them: understood, or refused with the line."""

from __future__ import annotations

from typing import Any

import pytest

from firestore_outbox.reminders.target_file import BadFile, TargetFile, parse_target_file

PAIR = ({"id": "ann", "to": "+491511234567"}, {"id": "bob", "to": "+491511234568"})
ALONE = tuple({"id": one["to"], "to": one["to"]} for one in PAIR)


@pytest.mark.parametrize(
    ("content", "targets"),
    [
        ("+491511234567\n+491511234568\n", ALONE),
        ("\ufeff+491511234567\r\n\r\n+491511234568", ALONE),
        ("to\n+491511234567\n+491511234568\n", ALONE),
        ("Phone\n+49 151 1234567\n+49 (151) 123-4568\n", ALONE),
        ("ann,+491511234567\nbob,+491511234568\n", PAIR),
        ("ann;+491511234567\nbob;+491511234568\n", PAIR),
        ("ann\t+491511234567\nbob\t+491511234568\n", PAIR),
        ("+491511234567,ann\n+491511234568,bob\n", PAIR),
        ("to|id\n+491511234567|ann\n+491511234568|bob\n", PAIR),
        ('"ann","+491511234567"\n"bob","+491511234568"\n', PAIR),
        ("ann,+491511234567\nann,+491511234567\nbob,+491511234568\n", PAIR),
        ("group 1,1203@g.us\n", ({"id": "group 1", "to": "1203@g.us"},)),
        ("a,b\n", ({"id": "a", "to": "b"},)),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_file_is_understood(content: str, targets: tuple[Any, ...]) -> None:
    found = parse_target_file(content)
    assert isinstance(found, TargetFile), found
    assert found.targets == targets


def test_other_columns_of_a_header_are_variables_and_an_empty_cell_is_no_value() -> None:
    found = parse_target_file("name;to;city\nAnn;+491511234567;Berlin\nBob;+491511234568;\n")
    assert isinstance(found, TargetFile)
    assert found.variables == ("name", "city")
    assert [one["variables"] for one in found.targets] == [{"name": "Ann", "city": "Berlin"}, {"name": "Bob"}]
    assert found.lines == (2, 3)


def test_a_row_that_is_there_twice_counts_once_and_is_counted() -> None:
    found = parse_target_file("1@g.us\n2@g.us\n1@g.us\n")
    assert isinstance(found, TargetFile)
    assert (len(found.targets), found.repeated) == (2, 1)


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        ("", 1, "the file has no targets"),
        ("to,id\n", 1, "a header and no targets"),
        ("id,name\nx,Ann\n", 1, "one column must be called to"),
        ("to,phone\n1@g.us,2@g.us\n", 1, "one column must be called to"),
        ("to,tz,timezone\n1@g.us,UTC,UTC\n", 1, "and one timezone"),
        ("to,first name\n1@g.us,Ann\n", 1, "column 2 is called 'first name'"),
        ("to,name,name\n1@g.us,Ann,Ann\n", 1, "two columns have the same name"),
        ("a,1@g.us,x\n", 1, "3 columns and no header"),
        ("a,1@g.us\nb,2@g.us,x\n", 2, "it has 3 columns"),
        ("a,1@g.us\n2@g.us,b\nc,3@g.us\n", 2, "the other way round"),
        ("a,1@g.us\n\na,2@g.us\n", 3, "the id 'a' is on line 1 already"),
        ("a,1@g.us\nb,1@g.us\n", 2, "the address '1@g.us' is on line 1 already"),
        ("to,name\n1@g.us,Ann\n,Bob\n", 3, "the address is empty"),
        ('"a\n1@g.us\n', 1, "one address on each line, or CSV"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_cannot_be_understood_is_refused_with_its_line(content: str, line: int, words: str) -> None:
    found = parse_target_file(content)
    assert isinstance(found, BadFile)
    assert (found.line, words in found.sentence) == (line, True), found


def test_a_column_with_the_recipients_time_zone_is_not_a_variable() -> None:
    found = parse_target_file("to,Timezone,name\n+81312345678,Asia/Tokyo,Aiko\n+491511234567,,Ann\n")
    assert isinstance(found, TargetFile)
    assert found.variables == ("name",)
    assert found.targets == (
        {"id": "+81312345678", "to": "+81312345678", "timezone": "Asia/Tokyo", "variables": {"name": "Aiko"}},
        {"id": "+491511234567", "to": "+491511234567", "variables": {"name": "Ann"}},
    )


def test_the_line_of_a_cell_with_a_line_break_is_the_one_where_it_begins() -> None:
    found = parse_target_file('to,name\n1@g.us,"Ann\nLee"\n2@g.us,Bob,x\n')
    assert isinstance(found, BadFile)
    assert found.line == 4
