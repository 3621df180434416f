"""Whether a function can be imported by another process, and under which name; else why not."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tiebreak import files
from tiebreak.errors import TiebreakError


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A function for a study file: `module:name` and the folder of the module, or why only this process has it."""

    name: str
    folder: str = ""
    why_here: str = ""  # empty: it can be imported elsewhere


def reference(function: Callable[..., Any]) -> Reference:
    """How another process finds the function."""
    plain = function.func if isinstance(function, functools.partial) else function
    name = getattr(plain, "__qualname__", "") or type(plain).__name__
    short = getattr(plain, "__name__", name)
    if not inspect.isfunction(function):
        return Reference(name=short, why_here="it is no plain function")
    if "<locals>" in name:
        return Reference(name=short, why_here="it is defined inside another function")
    if "<lambda>" in name:
        return Reference(name=short, why_here="it is a lambda, which has no name to be imported by")
    module = sys.modules.get(function.__module__)
    path = getattr(module, "__file__", None)
    if module is None or path is None:
        return Reference(name=short, why_here="it is defined in a notebook or an interactive session")
    dotted = function.__module__
    if dotted == "__main__":
        spec = getattr(module, "__spec__", None)
        dotted = spec.name if spec is not None else Path(path).stem
        guarded = _guarded_lines(Path(path))
        if not guarded:
            why = f'{Path(path).name} would start again in a worker: put the call below `if __name__ == "__main__":`'
            return Reference(name=short, why_here=why)
        if any(function.__code__.co_firstlineno in lines for lines in guarded):
            why = 'it is defined below `if __name__ == "__main__":`, which a worker does not run: put it above'
            return Reference(name=short, why_here=why)
    if _attribute(module, name) is not function:
        return Reference(name=short, why_here=f"{dotted}.{name} is another object, such as a decorated one")
    folder = Path(path).resolve().parents[dotted.count(".") + (Path(path).name == "__init__.py")]
    return Reference(name=f"{dotted}:{name}", folder=str(folder))


def check_arguments(function: Callable[..., Any], names: set[str], arm: str) -> None:
    """Raise unless the function takes `seed` and these names, and needs nothing else."""
    parameters = inspect.signature(function).parameters.values()
    what = f"{getattr(function, '__name__', 'the function')}()"
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        accepted = {"seed", *names}
    else:
        accepted = {each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
    for name in ("seed", *sorted(names)):
        if name not in accepted:
            raise TiebreakError(f"{what} has no parameter {name!r}, which arm {arm!r} gives; add it, or leave it out")
    for each in parameters:
        needed = each.default is each.empty and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
        if needed and each.name not in {"seed", "out", *names}:
            raise TiebreakError(f"{what} needs {each.name!r}, which arm {arm!r} does not give; add it to arms or grid")


def _attribute(module: ModuleType, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _guarded_lines(path: Path) -> list[range]:
    """The lines of a script below `if __name__ == "__main__":`, which importing it does not run."""
    try:
        tree = ast.parse(files.read_text(path))
    except (TiebreakError, SyntaxError, ValueError, RecursionError):
        return []
    return [
        range(each.lineno, (each.end_lineno or each.lineno) + 1)
        for each in tree.body
        if isinstance(each, ast.If)
        and any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(each.test))
    ]
