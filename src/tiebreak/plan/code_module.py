"""One parsed Python file, divided into the definitions that `code_identity` follows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tiebreak.plan.code_text import Written, is_text, written

EVERYTHING = "*"  # instead of a name: the whole module
# Modules whose decorators register nothing.
PURE = ("abc", "contextlib", "dataclasses", "enum", "functools", "triton", "typing")


@dataclass(frozen=True)
class Imported:
    """What a name is bound to by an import: a module, or a name in a module."""

    module: str
    name: str = ""


class Module:
    """One parsed file: its top-level definitions, its imports, and the statements that do more than bind a name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tree = ast.parse(path.read_bytes())
        self.definitions: dict[str, list[ast.stmt]] = {}
        self.effects: list[ast.stmt] = []
        for statement in self.tree.body:
            if isinstance(statement, ast.Import | ast.ImportFrom) or _is_guard(statement):
                continue
            names = set(_bound(statement))
            for name in names:
                self.definitions.setdefault(name, []).append(statement)
            if (not names and not is_text(statement)) or _does_more(statement) or self._registers(statement):
                self.effects.append(statement)
        self._written: dict[str, Written] = {}

    def _registers(self, statement: ast.stmt) -> bool:
        """Whether a decorator may register the definition, so that it is used without its name."""
        for decorator in getattr(statement, "decorator_list", ()):
            names = [node.id for node in ast.walk(decorator) if isinstance(node, ast.Name)]
            if not any(name in self.imports and self.imports[name][-1].module in PURE for name in names):
                return True
        return False

    @cached_property
    def imports(self) -> dict[str, list[Imported]]:
        """What the names of all imports in the file may stand for, also of those inside functions, `try` and `if`."""
        found = dict[str, list[Imported]]()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    name, imported = alias.asname or first, Imported(alias.name if alias.asname else first)
                    found.setdefault(name, []).append(imported)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    imported = Imported("." * node.level + (node.module or ""), alias.name)
                    found.setdefault(alias.asname or alias.name, []).append(imported)
        found.pop("*", None)
        return {name: list(dict.fromkeys(each)) for name, each in found.items()}

    def imported_names(self) -> set[str]:
        """Every module that the file may import, with the packages around it; some are names in a module."""
        found = set[str]()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                dotted = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = "." * node.level + (node.module or "")
                dotted = [f"{base}{'.' if node.module else ''}{alias.name}" for alias in node.names]
            else:
                continue
            for name in dotted:
                dots, parts = name[: len(name) - len(name.lstrip("."))], name.lstrip(".").split(".")
                found |= {dots + ".".join(parts[:end]) for end in range(1, len(parts) + 1)} | ({dots} - {""})
        return found

    @cached_property
    def stars(self) -> list[Imported]:
        """The modules of which the file imports everything."""
        froms = [node for node in ast.walk(self.tree) if isinstance(node, ast.ImportFrom)]
        return [
            Imported("." * node.level + (node.module or ""), EVERYTHING) for node in froms if node.names[0].name == "*"
        ]

    def written(self, name: str) -> Written:
        """The text of a definition, of all of them, or (for an empty name) of `effects`."""
        if name not in self._written:
            every = [each for each in self.tree.body if not isinstance(each, ast.Import | ast.ImportFrom)]
            parts = every if name == EVERYTHING else self.definitions[name] if name else self.effects
            self._written[name] = written(parts, is_task=self.path.parts[-3:-1] == ("tiebreak", "tasks"))
        return self._written[name]


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a statement at the top level of a module binds; variables of comprehensions are their own."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif not isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Lambda):
        for inner in ast.iter_child_nodes(node):
            yield from _bound(inner)


def _does_more(statement: ast.stmt) -> bool:
    """Whether a block at the top level of a module, which binds names, may do more than that."""
    if not isinstance(statement, ast.For | ast.While | ast.With | ast.If | ast.Try):
        return False
    inner = [each for each in ast.walk(statement) if isinstance(each, ast.stmt)]
    return any(isinstance(each, ast.Expr | ast.Assign | ast.AugAssign | ast.Delete) for each in inner)


def _is_guard(statement: ast.stmt) -> bool:
    """`if TYPE_CHECKING:` and `if __name__ == "__main__":`, which decide nothing."""
    if not isinstance(statement, ast.If):
        return False
    return bool({"TYPE_CHECKING", "__name__"} & {n.id for n in ast.walk(statement.test) if isinstance(n, ast.Name)})
