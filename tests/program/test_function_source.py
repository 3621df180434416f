"""The hash of a function changes with its text, and with the values and helpers that it uses."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tiebreak.program.function_source import source_hash

Train = Callable[..., Any]


def train(seed: int, width: int) -> int:
    return seed + width


def closure(width: int) -> Train:
    return lambda seed: train(seed, width)


class Callee:
    def __init__(self, width: int) -> None:
        self.width = width

    def __call__(self, seed: int) -> int:
        return seed + self.width


def cells(*texts: str) -> dict[str, Any]:
    """The variables of a notebook whose cells are these."""
    found: dict[str, Any] = {"__name__": "__main__"}
    for text in texts:
        exec(text, found)
    return found


def test_the_text_of_a_function_decides_its_hash() -> None:
    assert source_hash(train) == source_hash(train)
    assert source_hash(train) != source_hash(closure)
    found = cells("def a(seed): return 1", "def b(seed): return 2")
    assert source_hash(found["a"]) != source_hash(found["b"])


def test_values_that_it_has_caught_or_was_given() -> None:
    for make in (closure, lambda width: functools.partial(train, width=width), Callee):
        assert source_hash(make(1)) == source_hash(make(1))
        assert source_hash(make(1)) != source_hash(make(2))


def test_variables_and_helpers_of_other_cells() -> None:
    cell = "def train(seed): return helper(seed) * rate"
    first = source_hash(cells("rate = 0.1", "def helper(seed): return seed", cell)["train"])
    assert first == source_hash(cells("rate = 0.1", "def helper(seed): return seed", cell, "other = 3")["train"])
    assert first != source_hash(cells("rate = 0.2", "def helper(seed): return seed", cell)["train"])
    assert first != source_hash(cells("rate = 0.1", "def helper(seed): return seed + 1", cell)["train"])


def test_what_the_function_changes_itself_does_not_count() -> None:
    cell = "def train(seed):\n    global calls\n    calls += 1"
    assert source_hash(cells("calls = 0", cell)["train"]) == source_hash(cells("calls = 5", cell)["train"])
