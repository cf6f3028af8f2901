"""Random commits of several writes, under conditions about what each document was and what the commit makes of it."""

from __future__ import annotations

from random import Random
from typing import Any

IDS = ("1", "2", "3")
ROOT = "/databases/$(database)/documents/a"


def rules(random: Random) -> str:
    condition = _condition(random)
    if random.random() < 0.6:
        condition = f"{condition} {random.choice(('&&', '||'))} {_condition(random)}"
    return (
        "rules_version = '2'; service cloud.firestore { match /databases/{database}/documents { match /a/{id} { "
        f"allow write: if {condition}; }} }} }}"
    )


def _condition(random: Random) -> str:
    other, value = random.choice(IDS), random.randint(0, 3)
    condition = random.choice(
        (
            f"existsAfter({ROOT}/{other})",
            f"exists({ROOT}/{other})",
            f"existsAfter({ROOT}/{other}) != exists({ROOT}/{other})",
            f"getAfter({ROOT}/{other}).data.v == {value}",
            f"getAfter({ROOT}/{other}).data.v > {value}",
            f"getAfter({ROOT}/{other}).data.get(['m', 'n'], 0) == {value}",
            f"get({ROOT}/{other}).data.v == {value}",
            f"getAfter({ROOT}/$(id)).data.v == {value}",
            f"getAfter({ROOT}/$(id)).data == request.resource.data",
            f"get({ROOT}/$(id)).data == resource.data",
            f"request.resource.data.v == {value}",
            f"request.resource.data.v is {random.choice(('int', 'float', 'timestamp', 'list'))}",
            f"request.resource.data.l.size() == {value}",
            f"request.resource.data.m.n == {value}",
            "request.resource.data.keys().hasOnly(['v', 'm'])",
            f"request.resource.data.diff(resource.data).affectedKeys().hasOnly(['{random.choice('vml')}'])",
            f"request.resource.data.diff(resource.data).addedKeys().size() == {value}",
            "request.resource == null",
            "resource == null",
            f"request.method == '{random.choice(('create', 'update', 'delete'))}'",
            f"id == '{other}'",
            "request.resource.data.t == request.time",
            f"resource.data.v == {value}",
            "true",
        )
    )
    return condition if random.random() < 0.75 else f"!({condition})"


def stored(random: Random) -> dict[str, dict[str, Any]]:
    return {f"a/{one}": _plain(random) for one in IDS if random.random() < 0.6}


def _plain(random: Random) -> dict[str, Any]:
    full = {
        "v": random.choice((0, 1, 2, 1.5)),
        "m": {"n": random.randint(0, 3), "o": "x"},
        "l": random.choices((1, 2), k=random.randint(0, 2)),
    }
    return {name: value for name, value in full.items() if random.random() < 0.7}


def writes(random: Random, root: str, wire: Any) -> list[dict[str, Any]]:
    """One to four writes, each in the protocol's JSON. A document may be written more than once."""
    return [_write(random, f"{root}/a/{random.choice(IDS)}", wire) for _ in range(random.randint(1, 4))]


def _write(random: Random, name: str, wire: Any) -> dict[str, Any]:
    if random.random() < 0.15:
        return {"delete": name}
    fields = {key: wire(value) for key, value in _plain(random).items()}
    write: dict[str, Any] = {"update": {"name": name, "fields": fields}}
    kind = random.random()
    if kind < 0.4:
        paths = random.sample(("v", "m.n", "m", "l", "t"), random.randint(0, 2))
        write["updateMask"] = {"fieldPaths": [] if {"m", "m.n"} <= {*paths} else paths}
    if random.random() < 0.4:
        write["updateTransforms"] = [
            random.choice(
                (
                    {"fieldPath": "t", "setToServerValue": "REQUEST_TIME"},
                    {"fieldPath": "w", "increment": {"integerValue": "1"}},
                    {"fieldPath": "k", "appendMissingElements": {"values": [{"integerValue": "1"}]}},
                )
            )
        ]
    if random.random() < 0.15:
        write["currentDocument"] = {"exists": random.random() < 0.5}
    return write
