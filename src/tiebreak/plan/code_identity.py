"""A digest of the code that decides a run's numbers: the definitions that its design, task and training use.

Files are parsed, not run. From a few entry points, every name that a top-level definition uses is followed to its
definition, in the same module and through imports into our other modules and into modules beside a user's file.
Comments, docstrings, the texts of exceptions and the place of a definition do not count. Names that appear only in
annotations are not followed. Where it is not clear what is used, more is taken: a whole module, or statements that
bind no name.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from tiebreak.errors import TiebreakError
from tiebreak.plan.code_module import EVERYTHING, Imported, Module

PACKAGE = Path(__file__).parents[1]
NOT_FOLLOWED = (  # they decide no numbers of a run, or what they decide is part of its identity anyway
    *("api", "catalog", "cli", "drive", "errors", "own_functions", "plan", "report", "results", "study", "text"),
    *("exchange", "study_result", "theory", "verdict"),
    *("data.checksums", "data.families", "data.fetch", "data.load_progress", "data.sources", "data.user_paths"),
    "train.checkpoint",
)
TRAINING: Mapping[str, tuple[str, ...]] = {  # the entry points of training, the same for all runs
    "models.design": ("Design",),
    "train.run_group": ("make_group",),
    "train.trainer": ("Trainer",),
    "train.loop": ("Loop",),
    "train.fused.engine": ("Fused",),
}
DYNAMIC = ("__import__", "eval", "exec", "globals", "importlib")  # in a file that has these, everything may be used

Target = tuple[Module, str]


class Sources:
    """The code of one copy of the package and of users' files, as it is when it is first asked for."""

    def __init__(self, package: Path = PACKAGE) -> None:
        self._package = package
        self._modules: dict[Path, Module] = {}
        self._folders: list[Path] = []  # of users' files
        self._digests: dict[Target, str] = {}

    def run_source(self, design: Target, *task: Target) -> str:
        """The digest of the code that decides the numbers of runs of a design and a task, which may have two parts."""
        return _hash([self.digest(target) for target in (design, *task, *self._training())])[:20]

    def run_parts(self, design: Target, *task: Target) -> dict[str, str]:
        """The same in parts, to say which of them changed."""
        training = _hash([self.digest(target) for target in self._training()])
        parts = {"design": self.digest(design), "task": self.digest(task[0]), "training": training}
        return {name: value[:20] for name, value in parts.items()}

    def _training(self) -> list[Target]:
        return [(self._ours(module), name) for module, names in TRAINING.items() for name in names]

    def digest(self, target: Target) -> str:
        """The digest of a definition with everything that it uses."""
        if target not in self._digests:
            self._digests[target] = self._digest(target, {})
        return self._digests[target]

    def definition(self, value: Any) -> Target:
        """Where a class or a function is defined, at the top level of a module."""
        name = value.__qualname__.partition(".")[0]
        if value.__module__.startswith("tiebreak."):
            module = self._ours(value.__module__.removeprefix("tiebreak."))
        else:
            module = self.module(Path(inspect.getsourcefile(value) or ""))
        return module, name if name in module.definitions else EVERYTHING

    def user_design(self, path: Path, design: str) -> Target:
        """A design of a user's file: what its DESIGNS has under the name, a class or an expression."""
        module = self.module(path)
        self._folders.append(path.parent)
        used = {node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name)}
        for statement in module.definitions.get("DESIGNS", ()) if not used & set(DYNAMIC) else ():
            value = getattr(statement, "value", None)
            for key, each in zip(value.keys, value.values, strict=True) if isinstance(value, ast.Dict) else ():
                if isinstance(key, ast.Constant) and key.value == design:
                    entry = f"DESIGNS[{design!r}]"
                    module.definitions[entry] = [ast.Expr(each)]
                    return module, entry
        return module, EVERYTHING

    def user_functions(self, path: Path, names: Sequence[str]) -> Target:
        """Functions of a user's file, such as those of an own task."""
        module = self.module(path)
        self._folders.append(path.parent)
        if {node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name)} & set(DYNAMIC):
            return module, EVERYTHING
        entry = f"functions {', '.join(names)}"
        module.definitions[entry] = [ast.Expr(ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load()))]
        return module, entry

    def helper_files(self, path: Path) -> list[Path]:
        """The modules beside a user's file that it imports, directly or through one another."""
        found: set[Path] = set()
        waiting = [path]
        self._folders.append(path.parent)
        while waiting:
            module = self.module(waiting.pop())
            located = {self._locate(name, module) for name in module.imported_names()}
            beside = {each for each in located if each and each.is_relative_to(path.parent)}
            new = {each for each in beside if not each.is_relative_to(self._package)} - found - {path}
            found |= new
            waiting += sorted(new)
        return sorted(found)

    def module(self, path: Path) -> Module:
        """The parsed file."""
        if path not in self._modules:
            stat = path.stat()
            self._modules[path] = _parse(path, stat.st_size, stat.st_mtime_ns)
        return self._modules[path]

    def _ours(self, dotted: str) -> Module:
        return self.module(self._package.joinpath(*dotted.split(".")).with_suffix(".py"))

    def _digest(self, target: Target, known: dict[Target, str]) -> str:
        """By what a definition says and what the names in it stand for. In a cycle, a name stands for itself."""
        if target in known:
            return known[target]
        module, name = target
        known[target] = f"cycle {name}"
        text = module.written(name)
        parts = [text.content]
        for chain in text.names:
            for meaning in self._meanings(module, chain):
                parts += [chain, self._digest(meaning, known) if isinstance(meaning, tuple) else meaning]
        if name and module.effects and name != EVERYTHING:
            parts.append(self._digest((module, ""), known))
        parts += [self._digest(each, known) for each in self._executed(module)]
        for star in module.stars:
            meaning = self._imported(module, star, "")
            parts.append(self._digest(meaning, known) if isinstance(meaning, tuple) else meaning)
        known[target] = _hash(parts)
        return known[target]

    def _executed(self, module: Module) -> list[Target]:
        """What importing a user's file executes of the modules beside it, though it may use no name of them."""
        if module.path.is_relative_to(self._package):
            return []
        paths = {self._locate(name, module) for name in module.imported_names()} - {None, module.path}
        beside = sorted(path for path in paths if path and not path.is_relative_to(self._package))
        return [(found, "") for found in map(self.module, beside) if found.effects or found.imports]

    def _meanings(self, module: Module, chain: str) -> list[Target | str]:
        """What a name with its attributes may stand for in a module: definitions, or a text for all outside."""
        first, _, rest = chain.partition(".")
        found: list[Target | str] = [(module, first)] if first in module.definitions else []
        if first == "tiebreak" and first not in module.imports:  # in a string: a module that is run as a process
            return [*found, self._imported(module, Imported("tiebreak"), rest)]
        if found and module.path.is_relative_to(self._package):
            return found
        return found + [self._imported(module, each, rest) for each in module.imports.get(first, ())]

    def _imported(self, module: Module, imported: Imported, attributes: str) -> Target | str:
        dotted, names = imported.module, [each for each in (imported.name, *attributes.split(".")) if each]
        path = self._locate(dotted, module)
        while names and (inner := self._locate(_join(dotted, names[0]), module)) is not None:
            dotted, path, names = _join(dotted, names[0]), inner, names[1:]
        if path is None:  # of torch, numpy, the standard library: its name is all that is seen
            return f"outside {dotted} {imported.name}"
        if path.is_relative_to(self._package) and self._is_skipped(path):
            return "not followed"
        found = self.module(path)
        name = names[0] if names else EVERYTHING
        if name in found.definitions:
            return found, name
        if len(found.imports.get(name, ())) == 1:
            return self._imported(found, found.imports[name][0], ".".join(names[1:]))
        return found, EVERYTHING

    def _is_skipped(self, path: Path) -> bool:
        dotted = ".".join(path.relative_to(self._package).with_suffix("").parts)
        return any(dotted == each or dotted.startswith(f"{each}.") for each in NOT_FOLLOWED)

    def _locate(self, dotted: str, user: Module) -> Path | None:
        """The file of a module: one of ours, or one beside the file that imports it or beside the user's file."""
        first, *rest = names = dotted.lstrip(".").split(".")
        level = len(dotted) - len(dotted.lstrip("."))  # one dot: of the package that the file is in
        if first == "tiebreak" and not level:
            places = [self._package.joinpath(*rest)]
        elif user.path.is_relative_to(self._package) or not (first or level):
            return None
        elif level:
            places = [user.path.parents[level - 1].joinpath(*filter(None, names))]
        else:
            places = [folder.joinpath(*names) for folder in (user.path.parent, *self._folders)]
        candidates = (path for place in places for path in (place.with_name(f"{place.name}.py"), place / "__init__.py"))
        return next((path for path in candidates if path.is_file()), None)


def _join(dotted: str, name: str) -> str:
    """A name in a module; `from . import name` has no more than dots before it."""
    return dotted + name if dotted.endswith(".") else f"{dotted}.{name}"


@lru_cache(maxsize=1000)
def _parse(path: Path, size: int, changed: int) -> Module:
    """The parsed file; it is parsed again when its size or its time of change differ."""
    try:
        return Module(path)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise TiebreakError(f"{path}{f':{line}' if line else ''}: not valid Python: {error}") from None


def _hash(parts: list[str]) -> str:
    hasher = hashlib.sha256()
    for part in parts:
        content = part.encode(errors="surrogatepass")
        hasher.update(len(content).to_bytes(8, "little") + content)
    return hasher.hexdigest()
