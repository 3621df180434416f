from __future__ import annotations

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize("name", ["tiebreak", "tiebreak.streams", "tiebreak.study_rules", "tiebreak.cost.formulas"])
def test_the_examples_in_docstrings_are_true(name: str) -> None:
    result = doctest.testmod(import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
