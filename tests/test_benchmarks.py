"""Benchmarks are run by hand; here each name that a script imports from tiebreak or another script is looked up."""

from __future__ import annotations

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from support import REPOSITORY

ROOT = REPOSITORY / "benchmarks"
SCRIPTS = sorted(ROOT.rglob("*.py"))


def imported(path: Path) -> list[tuple[str, str | None]]:
    """(module, name) for every import of the script, wherever it stands; no name for `import module`."""
    found: list[tuple[str, str | None]] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [(node.module, alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
    return found


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_script_imports_from_tiebreak_exists(script: Path) -> None:
    for module, name in imported(script):
        if module.partition(".")[0] == "tiebreak" and not _needs_a_gpu(module):
            found = import_module(module)
            assert name is None or hasattr(found, name) or find_spec(f"{module}.{name}"), f"{module}.{name}"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_script_imports_from_other_scripts_exists(script: Path) -> None:
    known = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in SCRIPTS}
    for module, name in imported(script):
        if module in known and name is not None:
            defined = {target for node in ast.parse(known[module].read_text("utf-8")).body for target in _defined(node)}
            assert name in defined, f"{module}.{name}"
        elif module.partition(".")[0] == "peers":
            assert module in known or f"{module}.{name}" in known, module


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    return []


def _needs_a_gpu(module: str) -> bool:
    """Our kernels are written in Triton, which exists where there is a GPU."""
    return module.startswith("tiebreak.layers.kernels") and find_spec("triton") is None


def test_every_script_says_how_to_run_it() -> None:
    for script in ROOT.glob("*.py"):
        text = ast.get_docstring(ast.parse(script.read_text("utf-8"))) or ""
        assert "__main__" not in script.read_text("utf-8") or f"python benchmarks/{script.name}" in text, script.name


def test_a_session_on_a_gpu_measures_networks_and_sides_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    table, designs = import_module("peers.session_rows"), import_module("peers.own_designs")
    rows = [*table.each_of(table.NETS), *table.each_of(table.MORE)]
    assert len(set(rows)) == len(rows)
    assert {net for net, *_ in rows} == set(designs.OWN_NETS)
    assert {how for _, _, how, _ in rows} == {"tf32", "bf16"}
    written = (ROOT / "own_nets.py").read_text("utf-8") + (ROOT / "peers" / "own_solo.py").read_text("utf-8")
    assert all(
        side.removeprefix("plain ").removeprefix("JAX ") in written for *_, side in rows if side != "JAX library"
    )
