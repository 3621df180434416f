from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

THEORY = sorted((Path(__file__).parents[1] / "docs" / "theory").glob("*.md"))


@pytest.mark.parametrize(
    "name",
    [
        "tiebreak",
        "tiebreak.streams",
        "tiebreak.study.base",
        "tiebreak.study.registry",
        "tiebreak.cost.formulas",
        "tiebreak.theory.fit",
    ],
)
def test_the_examples_in_docstrings_are_true(name: str) -> None:
    result = doctest.testmod(import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("page", THEORY, ids=lambda page: page.stem)
def test_the_numbers_on_the_pages_of_theory_are_true(page: Path) -> None:
    assert doctest.testfile(str(page), module_relative=False).failed == 0
