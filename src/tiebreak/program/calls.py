"""Calling a Python function as a run: its result becomes the same files that a program leaves.

A function takes `seed`, the values of its arm and of the grid, and `out`, its folder, if it has such a parameter.
It returns {"val": {METRIC: …}, "test": {METRIC: …}}, with "outcomes" if it likes; or it yields a dict of metrics for
each epoch and then returns the scores (or gives them in the last dict).
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tiebreak.errors import TiebreakError
from tiebreak.study.registry import Scalar

SCORES, EPOCHS, OUTCOMES = "scores.json", "metrics.jsonl", "outcomes.npz"  # what a call leaves in `out`

Calls = Mapping[str, Callable[..., Any]]  # by arm


def call(function: Callable[..., Any], values: Mapping[str, Scalar], *, seed: int, out: Path) -> None:
    """Call the function with what it takes, and write down what it returns."""
    own = {"out": out} if "out" in inspect.signature(function).parameters else {}
    result = function(seed=seed, **values, **own)
    if isinstance(result, Iterator):
        result = _collect(result, out / EPOCHS)
    scores, outcomes = _checked(result)
    if outcomes:
        import numpy as np  # only here: each call is a process

        arrays: dict[str, Any] = {key: np.asarray(each, dtype=np.float64) for key, each in outcomes.items()}
        np.savez_compressed(out / OUTCOMES, **arrays)
    (out / SCORES).write_text(json.dumps(scores))


def _collect(epochs: Iterator[Any], path: Path) -> Any:
    """The scores of a function that yields: what it returns, or the last dict. Each dict becomes a line of the file.

    Dicts with an `epoch` continue what an earlier attempt has left; without one they could not be told apart.
    """
    last: Any = None
    with ExitStack() as stack:
        file = None
        while True:
            try:
                last = next(epochs)
            except StopIteration as stop:
                return last if stop.value is None else stop.value
            kept = {key: value for key, value in last.items() if key != "outcomes"} if isinstance(last, dict) else last
            if file is None:
                continues = isinstance(kept, dict) and "epoch" in kept
                file = stack.enter_context(path.open("a" if continues else "w"))
            file.write(json.dumps(_plain(kept)) + "\n")
            file.flush()


def _checked(result: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The scores as plain numbers, and the outcomes."""
    if not isinstance(result, dict) or not isinstance(result.get("test"), dict):
        shape = '{"val": {"accuracy": 0.91}, "test": {"accuracy": 0.90}}'
        raise TiebreakError(f"the function should return scores such as {shape}, not {type(result).__name__}")
    scores = _plain({split: result[split] for split in ("val", "test") if split in result})
    return scores, dict(result.get("outcomes") or {})


def _plain(value: Any) -> Any:
    """Numbers of numpy and torch as Python's own."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, str | bool | int | float) or value is None:
        return value
    return float(value)
