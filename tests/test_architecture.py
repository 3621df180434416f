"""The house rules: who may import whom, what stays free of heavy imports, how large a file may grow."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "tiebreak"
BASE = ("errors", "files", "names", "own_designs", "processes", "ranges", "streams")

# Module or package -> what of ours it may import besides BASE and itself. docs/architecture.md draws the same.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "errors": (),
    "files": (),
    "names": (),
    "own_designs": (),
    "processes": (),
    "ranges": (),
    "streams": (),
    "reply": (),
    "stats": (),
    "cost.formulas": (),
    "cost.fit": (),
    "cost.symbolic": (),
    "cost.nets": ("cost.symbolic",),
    "cost.growth": ("cost.symbolic",),
    "cost.parts": ("cost.symbolic", "cost.nets"),
    "cost.rules": (),
    "scores": ("stats",),
    "study_file": (),
    "study_rules": (),
    "study": ("study_file", "study_rules"),
    "runs": ("study", "study_file"),
    "results": ("study", "study_file", "runs"),
    "sentences": ("study", "results", "stats"),
    "verdict": ("study", "runs", "results", "stats", "sentences"),
    "report": ("study", "runs", "results", "reply", "stats", "cost.formulas"),
    "data": (),
    "layers": ("cost.formulas",),
    "models": ("layers", "cost.formulas"),
    "cost.measure": ("models.interfaces", "cost.fit", "cost.rules"),
    "metrics": (),
    "tasks": ("data", "metrics", "models.decoding", "models.interfaces", "reply"),
    "catalog": ("models", "tasks", "data"),
    "cost.workloads": ("catalog", "layers", "models.interfaces", "cost.measure"),
    "cost.sweep": ("cost.parts", "cost.measure", "cost.workloads"),
    "costing": ("cost", "report"),
    "claims": (),
    "cost_identities": ("claims", "cost", "layers"),
    "identities": ("claims", "cost_identities", "layers"),
    "resolve": ("study",),
    "terms": ("study", "runs", "resolve", "stats"),
    "plan": (
        *(
            "resolve",
            "terms",
            "study",
            "runs",
            "catalog",
            "cost",
            "data",
            "models.fusing",
            "models.interfaces",
            "models.listening",
            "stats",
        ),
    ),
    "train": ("study", "runs", "catalog", "data", "tasks", "results", "layers", "models.fusing", "cost"),
    "watch": ("report", "results.record", "train.messages"),
    "api": ("study", "study_file", "runs", "plan", "results", "verdict", "report", "train", "watch"),
}
MAY_IMPORT["use"] = (
    *("api", "catalog", "models.interfaces", "reply", "resolve", "results", "runs", "study_rules", "tasks", "train"),
)
ANYTHING = ("cli", "cli_data", "__main__", "__init__")  # the outermost rooms
STANDARD_ONLY = ("names", "streams")

WITHOUT_TORCH = (
    "api",
    "claims",
    "cli",
    "cost.parts",
    "cost.sweep",
    "costing",
    "data.images",
    "plan",
    "report.claim_table",
    "report.cost_plot",
    "report.cost_table",
    "report.document",
    "report.figures",
    "report.terminal",
    "results.store",
    "runs",
    "scores",
    "stats",
    "study",
    "train.runner",
    "verdict",
)


def modules() -> dict[str, Path]:
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = path
    return found


def imports(path: Path) -> set[str]:
    """Everything of ours that the file imports, anywhere in it but under TYPE_CHECKING, without `tiebreak.`"""
    found: set[str] = set()
    tree = ast.parse(path.read_text("utf-8"))
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            base = node.module or ""
            found |= {f"{base}.{alias.name}" if _is_module(f"{base}.{alias.name}") else base for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name.removeprefix("tiebreak.") for name in found if name.startswith("tiebreak.")}


def _is_module(dotted: str) -> bool:
    path = SOURCE.parent / Path(*dotted.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def room(module: str) -> str:
    """The entry of MAY_IMPORT that a module belongs to: itself, or its package."""
    return module if module in MAY_IMPORT else module.partition(".")[0]


def within(module: str, places: tuple[str, ...]) -> bool:
    return any(module == place or module.startswith(f"{place}.") for place in places)


@pytest.mark.parametrize("module", sorted(modules()))
def test_imports_only_what_its_tier_allows(module: str) -> None:
    if module in ANYTHING:
        return
    own = room(module)
    if own == "cost":  # the package's own docstring
        assert not imports(modules()[module])
        return
    assert own in MAY_IMPORT, f"{module} has no tier: add it here and in docs/architecture.md"
    wrong = {name for name in imports(modules()[module]) if not within(name, (*BASE, own, *MAY_IMPORT[own]))}
    assert not wrong


def test_no_import_cycles() -> None:
    graph = {module: imports(path) & set(modules()) for module, path in modules().items() if module != "__init__"}
    done: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " -> ".join((*above, module))
        if module not in done:
            for inner in graph[module]:
                visit(inner, (*above, module))
            done.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize("module", STANDARD_ONLY)
def test_the_lowest_tier_imports_the_standard_library_only(module: str) -> None:
    tree = ast.parse(modules()[module].read_text("utf-8"))
    froms = {
        node.module.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module
    }
    plain = {
        alias.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    assert froms | plain <= set(sys.stdlib_module_names)


def test_what_must_stay_light_does_not_import_torch() -> None:
    names = ", ".join(f"tiebreak.{module}" for module in WITHOUT_TORCH)
    code = (
        f"import sys, {names}; print([m for m in ('torch', 'scipy.stats', 'matplotlib', 'sympy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_files_stay_small() -> None:
    sizes = {module: len(path.read_text("utf-8").splitlines()) for module, path in modules().items()}
    assert max(sizes.values()) <= 400, max(sizes, key=lambda module: sizes[module])
    assert sum(size < 250 for size in sizes.values()) >= 0.9 * len(sizes)


def test_every_module_says_what_it_is_for() -> None:
    silent = [module for module, path in modules().items() if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]
    assert not silent


def test_no_attic() -> None:
    assert not {"utils", "misc", "common", "helpers"} & {path.stem for path in modules().values()}
