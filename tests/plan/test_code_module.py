from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from tiebreak.plan.code_module import EVERYTHING, Imported, Module

CODE = '''
    """A module."""

    import numpy as np
    import torch.nn
    from functools import cache
    from typing import TYPE_CHECKING
    from star import *

    if TYPE_CHECKING:
        from elsewhere import Type

    A, (B, *C) = 1, (2, 3)
    D: int = 4
    E = [inner for inner in range(3)]
    A += 1

    try:
        import fast
        def f(): return fast.f()
    except ImportError:
        def f(): return 2

    @cache
    def g():
        from late import thing
        return thing

    @register("h")
    def h(): return 3

    TABLE = {}
    TABLE["x"] = h
    print("effect")

    if __name__ == "__main__":
        g()
'''


def module(folder: Path) -> Module:
    (folder / "code.py").write_text(dedent(CODE), "utf-8")
    return Module(folder / "code.py")


def test_a_file_is_divided_into_definitions_and_effects(tmp_path: Path) -> None:
    found = module(tmp_path)
    assert set(found.definitions) == {"A", "B", "C", "D", "E", "TABLE", "f", "g", "h"}
    assert len(found.definitions["A"]) == 2  # also what changes it
    assert len(found.effects) == 3  # what is registered, an entry of a table, a call


def test_imports_are_found_everywhere(tmp_path: Path) -> None:
    found = module(tmp_path)
    assert found.imports["np"] == [Imported("numpy")]
    assert found.imports["torch"] == [Imported("torch")]
    assert found.imports["thing"] == [Imported("late", "thing")]
    assert "*" not in found.imports
    assert found.stars == [Imported("star", EVERYTHING)]


def test_a_definition_can_be_written_alone_or_with_all(tmp_path: Path) -> None:
    found = module(tmp_path)
    assert "range" in found.written("E").names
    assert "print" in found.written("").names
    assert {"range", "print"} <= set(found.written(EVERYTHING).names)
