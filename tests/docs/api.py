"""Writes docs/api.md, the reference of the public API, from signatures and docstrings: python -m tests.docs.api

It reads source code and imports nothing of the product, so the page is the same on every Python version.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.snippets import ROOT

PACKAGE = ROOT / "worker/firestore_outbox"
PAGE = ROOT / "docs/api.md"
WIDTH = 100
FIELDS_ONLY = {"OutboxMessage"}
"""Its methods are the worker's transitions; an adapter reads the fields."""
INSTEAD_OF_FIELDS = {
    "Settings": "Each field is the variable `OUTBOX_{NAME}` of [operations.md](operations.md#settings), in lower case:"
    ' `Settings(project="my-chat", lane_concurrency=16)`.'
}
INTRODUCTION = """\
# API

`from firestore_outbox import …`: these names are public and follow semantic versioning. Every other module is private
and may change in any release. `make api` writes this page from the code.
"""


@dataclass(frozen=True, slots=True)
class Public:
    group: str
    name: str
    module: str
    """Below the package, for instance `backend.batch`."""


def public_names() -> Iterator[Public]:
    """The table in `firestore_outbox/__init__.py`, whose comments are the groups."""
    source = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    group = ""
    for line in source.partition("_HOME = {\n")[2].partition("\n}")[0].splitlines():
        if comment := re.fullmatch(r" *# (.+)", line):
            group = comment[1]
        elif entry := re.fullmatch(r' *"(\w+)": "([\w.]+)",', line):
            yield Public(group, entry[1], entry[2])
        else:
            raise ValueError(f"a line of _HOME is neither a comment nor a name: {line!r}")


def page() -> str:
    lines, group = [INTRODUCTION], ""
    for public in public_names():
        if public.group != group:
            group = public.group
            lines.append(f"## {group[0].upper()}{group[1:]}\n")
        lines += described(public)
    return "\n".join(lines).rstrip() + "\n"


def described(public: Public) -> Iterator[str]:
    node, comment = definition(public)
    yield f"### {public.name}\n"
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from _block(_signature(node))
        yield from _text(ast.get_docstring(node))
    elif isinstance(node, ast.ClassDef):
        yield from _class(node, public)
    else:
        yield from _block(_wrapped(ast.unparse(node)))
        yield from _text(comment)


def definition(public: Public) -> tuple[ast.stmt, str | None]:
    """Where the name is defined, and the string below it, which documents an alias."""
    file = PACKAGE / f"{public.module.replace('.', '/')}.py"
    body = ast.parse(file.read_text(encoding="utf-8")).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if public.name in _names(node):
            return node, _string(after)
    for node in body:  # the module passes it on
        if isinstance(node, ast.ImportFrom) and any(alias.name == public.name for alias in node.names):
            assert node.module is not None
            return definition(Public(public.group, public.name, node.module.removeprefix("firestore_outbox.")))
    raise LookupError(f"{public.module} has no {public.name}")


def _names(node: ast.stmt) -> tuple[str, ...]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return (node.name,)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return tuple(target.id for target in targets if isinstance(target, ast.Name))


def _class(node: ast.ClassDef, public: Public) -> Iterator[str]:
    bases = [ast.unparse(base) for base in node.bases]
    shown = ", ".join(base for base in bases if not base.startswith("_"))
    yield from _block(f"class {node.name}({shown})" if shown else f"class {node.name}")
    yield from _text(ast.get_docstring(node))
    if node.name in INSTEAD_OF_FIELDS:
        yield f"{INSTEAD_OF_FIELDS[node.name]}\n"
        return
    fields = [*_fields(node), *_inherited(bases, public)]
    if fields:
        yield "| field | |\n|---|---|"
        yield from (f"| `{declared}` | {text} |" for declared, text in fields)
        yield ""
    if node.name not in FIELDS_ONLY:
        for one in node.body:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and not one.name.startswith("_"):
                yield from _method(one)


def _inherited(bases: list[str], public: Public) -> Iterator[tuple[str, str]]:
    """The fields of a private base class in the same module."""
    for base in bases:
        if base.startswith("_"):
            node, _ = definition(Public(public.group, base, public.module))
            assert isinstance(node, ast.ClassDef)
            yield from _fields(node)


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for one, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(one, ast.AnnAssign | ast.Assign) and not _names(one)[0].startswith(("_", "model_config")):
            declared = ast.unparse(one).replace("|", "\\|")
            yield declared, " ".join((_string(after) or "").split()).replace("|", "\\|")


def _method(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    text = " ".join((ast.get_docstring(node) or "").split())
    if "property" in decorators:
        yield f"**`{node.name}`** → `{ast.unparse(node.returns) if node.returns else 'Any'}`. {text}".rstrip() + "\n"
    else:
        yield from _block(_signature(node))
        yield from _text(ast.get_docstring(node))


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    keyword = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    arguments = [one for one in _arguments(node.args) if one not in ("self", "cls")]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{keyword}{node.name}({', '.join(arguments)}){returns}"
    if len(line) <= WIDTH:
        return line
    return f"{keyword}{node.name}(\n" + "".join(f"    {one},\n" for one in arguments) + f"){returns}"


def _arguments(arguments: ast.arguments) -> Iterator[str]:
    defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + list(arguments.defaults)
    for one, default in zip(arguments.args, defaults, strict=True):
        yield _argument(one, default)
    if arguments.kwonlyargs:
        yield "*"
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _argument(one, default)


def _argument(one: ast.arg, default: ast.expr | None) -> str:
    text = ast.unparse(one)
    return text if default is None else f"{text} = {ast.unparse(default)}"


def _string(node: ast.stmt | None) -> str | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return inspect.cleandoc(node.value.value)
    return None


def _wrapped(text: str) -> str:
    return text if len(text) <= WIDTH else text.replace(" | ", "\n    | ")


def _block(code: str) -> Iterator[str]:
    yield f"```text\n{code}\n```\n"


def _text(docstring: str | None) -> Iterator[str]:
    if docstring:
        yield f"{docstring}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{Path(PAGE).relative_to(ROOT)} has {len(list(public_names()))} names")
