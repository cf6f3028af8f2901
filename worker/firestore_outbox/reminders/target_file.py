"""A file of targets, as people keep it: one address a line, or CSV with or without a header.

    +491511234567                     to;name;city                     id,to
    +491511234568                     +49 151 1234567;Ann;Berlin       vip,1203@g.us

Separators are comma, semicolon, tab and bar. With a header the columns `to`, `id` and `timezone` are found by their
names, in any order, and every other column is a variable of the target. Without one there are at most two columns, id
and address, in either order. A row that is there twice counts once. What cannot be understood is refused with its line.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

SEPARATORS = ",;\t|"
TO = frozenset(
    {"to", "address", "phone", "phone number", "phonenumber", "number", "mobile", "whatsapp", "recipient", "jid"}
)
ID = frozenset({"id", "target", "targetid", "target id"})
TIMEZONE = frozenset({"timezone", "time zone", "time_zone", "tz"})
"""The recipient's own, such as Europe/Berlin: it decides when the recipient's hours are."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,49}")
_PHONE = re.compile(r"\+?[0-9][0-9 ().\-]{5,30}")
_TARGET = re.compile(r"targets\[(\d+)\]")
_BETWEEN_DIGITS = re.compile(r"[ ().\-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFile:
    targets: tuple[Any, ...]
    """As a reminder's document has them."""
    lines: tuple[int, ...]
    """The line of each."""
    repeated: int = 0
    """Rows that were there before, and count once."""
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BadFile:
    line: int
    sentence: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class _Columns:
    count: int
    to: int
    id: int | None
    timezone: int | None = None
    variables: tuple[tuple[int, str], ...] = ()


Row = tuple[int, list[str]]


def parse_target_file(content: str) -> TargetFile | BadFile:
    lines = content.lstrip("\ufeff").splitlines(keepends=True)
    try:
        rows = list(_rows(lines))
    except csv.Error as error:
        return BadFile(1, f"expected one address on each line, or CSV with the columns to and id: {error}")
    if not rows:
        return BadFile(1, "the file has no targets")
    has_header = _is_header(rows[0][1])
    columns = _named(rows[0]) if has_header else _unnamed(rows)
    if isinstance(columns, BadFile):
        return columns
    return _targets(rows[1:] if has_header else rows, columns)


def located(fault: str, origins: Sequence[str]) -> str:
    """The fault of a target with its origin, such as its line, in place of its index."""
    found = _TARGET.search(fault)
    if found is None or int(found[1]) >= len(origins):
        return fault
    return fault.replace(found[0], origins[int(found[1])], 1)


def _rows(lines: Sequence[str]) -> Iterator[Row]:
    """(line, cells) of each row that has something in it."""
    first = next((line for line in lines if line.strip()), "")
    separator = max(SEPARATORS, key=lambda one: _outside_quotes(first).count(one))
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    line = 1
    for cells in reader:
        stripped = [cell.strip() for cell in cells]
        if any(stripped):
            yield line, stripped
        line = reader.line_num + 1


def _outside_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])


def _is_header(cells: Sequence[str]) -> bool:
    names = {cell.casefold() for cell in cells}
    return bool(names & (TO | ID)) and not any(_is_address(cell) for cell in cells)


def _is_address(cell: str) -> bool:
    return "@" in cell or _PHONE.fullmatch(cell) is not None


def _named(header: Row) -> _Columns | BadFile:
    line, cells = header
    names = [cell.casefold() for cell in cells]
    to = [place for place, name in enumerate(names) if name in TO]
    ids = [place for place, name in enumerate(names) if name in ID]
    zones = [place for place, name in enumerate(names) if name in TIMEZONE]
    if len(to) != 1 or len(ids) > 1 or len(zones) > 1:
        expected = "one column must be called to, one may be called id, and one timezone"
        return BadFile(line, f"{expected}; there are {', '.join(cells)}")
    others = [(place, cell) for place, cell in enumerate(cells) if place not in (*to, *ids, *zones)]
    for place, name in others:
        if not _VARIABLE.fullmatch(name):
            return BadFile(line, f"column {place + 1} is called {name!r}; a variable is letters, digits and _")
    if len({name for _, name in others}) < len(others):
        return BadFile(line, "two columns have the same name")
    return _Columns(len(cells), to[0], ids[0] if ids else None, zones[0] if zones else None, tuple(others))


def _unnamed(rows: Sequence[Row]) -> _Columns | BadFile:
    line, first = rows[0]
    if len(first) > 2:
        return BadFile(line, f"there are {len(first)} columns and no header; name them in the first line: to,name")
    if len(first) == 1:
        return _Columns(1, 0, None)
    pairs = [(at, cells) for at, cells in rows if len(cells) == 2]
    swapped = [at for at, (left, right) in pairs if _is_address(left) and not _is_address(right)]
    in_order = [at for at, (left, right) in pairs if _is_address(right) and not _is_address(left)]
    if swapped and in_order:
        odd = swapped[0] if len(swapped) <= len(in_order) else in_order[0]
        return BadFile(odd, "id and address are the other way round here than in other lines")
    return _Columns(2, 0, 1) if swapped else _Columns(2, 1, 0)


def _targets(rows: Sequence[Row], columns: _Columns) -> TargetFile | BadFile:
    targets: list[Any] = []
    lines: list[int] = []
    by_id: dict[str, int] = {}
    by_address: dict[str, int] = {}
    repeated = 0
    for line, cells in rows:
        if len(cells) != columns.count:
            return BadFile(line, f"it has {len(cells)} columns, and the first line has {columns.count}")
        to = _plain(cells[columns.to])
        name = to if columns.id is None else cells[columns.id] or to
        if not to:
            return BadFile(line, "the address is empty")
        target: dict[str, Any] = {"id": name, "to": to}
        if columns.timezone is not None and cells[columns.timezone]:
            target["timezone"] = cells[columns.timezone]
        if columns.variables:
            target["variables"] = {variable: cells[place] for place, variable in columns.variables if cells[place]}
        known = by_id.get(name, by_address.get(to))
        if known is not None:
            if targets[known] != target:
                twice = f"id {name!r}" if name in by_id else f"address {to!r}"
                return BadFile(line, f"the {twice} is on line {lines[known]} already, with something else beside it")
            repeated += 1
            continue
        by_id[name] = by_address[to] = len(targets)
        targets.append(target)
        lines.append(line)
    if not targets:
        return BadFile(rows[0][0] if rows else 1, "the file has a header and no targets")
    names = tuple(variable for _, variable in columns.variables)
    return TargetFile(targets=tuple(targets), lines=tuple(lines), repeated=repeated, variables=names)


def _plain(address: str) -> str:
    """A phone number without what people put between its digits."""
    return _BETWEEN_DIGITS.sub("", address) if _PHONE.fullmatch(address) else address
