"""Every `outbox` command that a document shows is one that the command line accepts, with these options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from firestore_outbox.cli import whole_app
from tests.docs.commands import steps
from tests.docs.snippets import DOCUMENTS, ROOT

COMMAND = typer.main.get_command(whole_app())
_SHOWN = re.compile(r"^ {4,}(?:[A-Z_]+=\S+ )*outbox ([a-z].*)$", re.MULTILINE)
USAGE: Any = typer.BadParameter.__base__
"""The error of a command line that makes no sense, of the click that typer has inside."""
PROSE = "where accountId"
"""A table of queries in docs/rules.md names the collection `outbox`."""


def shown() -> Iterator[tuple[str, str]]:
    """Document and command, without its comment."""
    for file in (*DOCUMENTS, ROOT / "examples/bot/README.md"):
        name = str(file.relative_to(ROOT))
        fenced = "\n".join(step.commands.replace("\\\n", " ") for step in steps(name))
        in_pipes = re.findall(r"^(?:.*\| *)?\s*outbox ([a-z][^|\n]*)", fenced, re.MULTILINE)
        for line in (*_SHOWN.findall(file.read_text(encoding="utf-8")), *in_pipes):
            if PROSE not in line:
                yield name, re.split(r"\s+# ", line)[0].strip()


def alternatives(words: list[str]) -> Iterator[list[str]]:
    """`pause|resume ID` is two commands."""
    for number, word in enumerate(words):
        if re.fullmatch(r"[a-z-]+(\|[a-z-]+)+", word):
            for one in word.split("|"):
                yield from alternatives([*words[:number], one, *words[number + 1 :]])
            return
    yield words


def check(command: Any, words: list[str], above: Any = None) -> None:
    """Raises what the command line would say against these words; runs nothing."""
    with command.make_context(command.name, list(words), parent=above) as context:
        if hasattr(command, "resolve_command"):
            _, chosen, rest = command.resolve_command(context, [*context._protected_args, *context.args])
            check(chosen, rest, context)


@pytest.mark.parametrize(("document", "line"), sorted(set(shown())))
def test_a_command_of_a_document_is_accepted(document: str, line: str) -> None:
    for words in alternatives(shlex.split(line)):
        try:
            check(COMMAND, words)
        except typer.Exit:
            assert "--help" in words
        except USAGE as error:
            pytest.fail(f"{document}: outbox {line}: {error.format_message()}")


def test_a_command_that_does_not_exist_is_noticed() -> None:
    for words in (["sned"], ["send", "--acount", "shop"], ["accounts", "add", "shop", "simulated"]):
        with pytest.raises(USAGE):
            check(COMMAND, words)
