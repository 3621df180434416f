"""Definitions as text that is the same for every version of Python, without what decides no numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

NO_NUMBERS = ("exhibits", "answer")  # methods of a task that decide no numbers of a run
ANNOTATIONS = ("annotation", "returns")  # written, but the names in them are not followed
NOISE = ("ctx", "type_comment", "kind")


class Written(NamedTuple):
    """A definition as text, and the names in it that may stand for other definitions, such as `F.relu`; sorted."""

    content: str
    names: tuple[str, ...]


def written(statements: Sequence[ast.stmt], *, is_task: bool = False) -> Written:
    """The statements without comments, docstrings and texts of exceptions; of a task, without `NO_NUMBERS`."""
    writer = _Writer(is_task)
    writer.write(list(statements))
    return Written("".join(writer.parts), tuple(sorted(writer.names)))


class _Writer:
    """Syntax trees as text. Later versions of Python have more fields, mostly empty: empty fields are left out."""

    def __init__(self, is_task: bool) -> None:
        self.parts: list[str] = []
        self.names: set[str] = set()
        self._is_task = is_task
        self._follow = True

    def write(self, part: object) -> None:
        if isinstance(part, ast.AST):
            self._node(part)
        elif isinstance(part, list):
            self.parts.append("[")
            for each in part:
                if not is_text(each):
                    self.write(each)
            self.parts.append("]")
        else:
            self.parts.append(repr(part))

    def _node(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name | ast.Attribute) and (chain := _chain(node)):
            self.parts.append(f"{chain} ")
            if self._follow:
                self.names.add(chain)
            return
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("tiebreak."):
            self.names.add(node.value)
        self.parts.append(f"{type(node).__name__}(")
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            self.write(node.exc.func)  # the text of an exception decides nothing
        else:
            for name, value in ast.iter_fields(node):
                if value is None or value == [] or name in NOISE:
                    continue
                self._field(node, name, value)
        self.parts.append(")")

    def _field(self, node: ast.AST, name: str, value: object) -> None:
        before = self._follow
        self._follow = before and name not in ANNOTATIONS
        self.parts.append(f"{name}=")
        if self._is_task and name == "body" and isinstance(node, ast.ClassDef):
            value = _with_numbers(node.body)
        self.write(value)
        self._follow = before


def is_text(statement: object) -> bool:
    """Whether a statement is nothing but a string, as a docstring is."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _chain(node: ast.expr) -> str:
    """`a.b.c` for a name with attributes; empty for an attribute of anything else."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(attributes)]) if isinstance(node, ast.Name) else ""


def _with_numbers(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """A task's class without the methods that make no numbers, nor the private ones that only those use."""
    kept = [each for each in body if not (isinstance(each, ast.FunctionDef) and each.name in NO_NUMBERS)]
    while True:
        used = set(_attributes(kept))
        left = [each for each in kept if not (_is_private(each) and each.name not in used)]  # type: ignore[attr-defined]
        if len(left) == len(kept):
            return kept
        kept = left


def _is_private(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.FunctionDef) and statement.name.startswith("_") and statement.name[1:2] != "_"


def _attributes(statements: Sequence[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        yield from (node.attr for node in ast.walk(statement) if isinstance(node, ast.Attribute))
