"""What verdicts promise, simulated on studies whose true difference is known: `make truth`.

    python benchmarks/truth.py [--studies 100000] [--out benchmarks/results]

Each study has paired differences of spread 1 (normal, Student's t with 3 degrees of freedom, difference of two
exponential scores), is looked at as `verdict.sequential` says, and stops at the first verdict. Beside it run two other
ways on the same differences: the same looks with alpha divided evenly over them (Bonferroni), and an anytime-valid test
(the e-process of the t-test with a normal prior on the standardised difference; Lai 1976, Wang and Ramdas 2024). The
advice to add seeds, followed again and again, skewed differences (`lopsided.py`) and the chance behind "futile"
(`futility.py`) are simulated too.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import nctdtr, stdtrit

import futility
import lopsided
from tiebreak.verdict import sequential

Array = NDArray[np.float64]
Cell = dict[str, Any]
ALPHA, LEAST = 0.05, 6
CAPS = (20, 60, 100)
MARGINS = (0.1, 0.25, 0.5, 1.0)  # in standard deviations of the difference
DIFFERENCES = (0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
EXTENSIONS = ((10, 20), (10, 34), (10, 20, 40), (10, 20, 40, 80, 160), (6, 12, 24, 48))
SHAPES: dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]] = {
    "normal": lambda stream, size: stream.standard_normal(size),
    "t3": lambda stream, size: stream.standard_t(3, size) / math.sqrt(3),
    "exponential difference": lambda stream, size: (
        (stream.exponential(size=size) - stream.exponential(size=size)) / math.sqrt(2)
    ),
}


def critical(levels: list[float], looks: tuple[int, ...]) -> Array:
    """The t quantiles of two-sided levels."""
    return np.array([-stdtrit(n - 1, level / 2) for n, level in zip(looks, levels, strict=True)])


def spending(looks: tuple[int, ...], cap: int) -> tuple[Array, Array]:
    """Quantiles of our looks: for a difference, and for `same`."""
    each = [sequential.Looks(looks[: k + 1], cap) for k in range(len(looks))]
    return critical([one.level(ALPHA) for one in each], looks), critical([one.level(2 * ALPHA) for one in each], looks)


def bonferroni(looks: tuple[int, ...], cap: int) -> tuple[Array, Array]:
    """The same with the error divided evenly."""
    many = len(looks)
    return critical([ALPHA / many] * many, looks), critical([2 * ALPHA / many] * many, looks)


def anytime(looks: tuple[int, ...], cap: int) -> tuple[Array, Array]:
    """Quantiles at which the t-test's e-process reaches 1 / alpha; the prior's variance is 1."""
    apart, alike = (np.array([_e_quantile(n, 1 / level) for n in looks]) for level in (ALPHA, 2 * ALPHA))
    return apart, alike


def naive(looks: tuple[int, ...], cap: int) -> tuple[Array, Array]:
    """As if each look were the only one."""
    return critical([ALPHA] * len(looks), looks), critical([2 * ALPHA] * len(looks), looks)


def _e_quantile(n: int, target: float) -> float:
    def log_e(t: float) -> float:
        shrunk = t * t / (n - 1) / (1 + n)
        return 0.5 * (-math.log1p(n) + n * (math.log1p(t * t / (n - 1)) - math.log1p(shrunk)))

    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if log_e(middle) < math.log(target) else (low, middle)
    return high


METHODS = {"spending": spending, "bonferroni": bonferroni, "anytime": anytime}


class Studies:
    """Means and standard errors of many studies at each look, if the true difference is 0."""

    def __init__(self, shape: str, looks: tuple[int, ...], studies: int) -> None:
        self.n = np.array(looks)
        blocks = []
        for block in range(max(1, studies // 10_000)):  # so that 100,000 studies of 100 seeds need little memory
            rows = SHAPES[shape](np.random.default_rng([19, looks[-1], block]), (min(studies, 10_000), looks[-1]))
            sums, squares = np.cumsum(rows, 1)[:, self.n - 1], np.cumsum(rows**2, 1)[:, self.n - 1]
            mean = sums / self.n
            blocks.append((mean, np.sqrt(np.maximum(squares - self.n * mean**2, 0) / (self.n - 1) / self.n)))
        self.mean, self.error = (np.concatenate(each) for each in zip(*blocks, strict=True))

    def outcome(self, truth: float, margin: float, quantiles: tuple[Array, Array]) -> dict[str, float]:
        """What happened, if the true difference is this."""
        apart, alike = quantiles
        mean = self.mean + truth
        different = np.abs(mean) > apart * self.error
        same = np.abs(mean) + alike * self.error < margin
        decided = different | same
        stop = np.where(decided.any(1), decided.argmax(1), len(self.n) - 1)
        row = np.arange(len(mean))
        called_same = same[row, stop]
        half = (apart * self.error)[row, stop]
        return {
            "different": float((different[row, stop] & ~called_same).mean()),
            "same": float(called_same.mean()),
            "coverage": float((np.abs(mean[row, stop] - truth) <= half).mean()),
            "median_seeds": float(np.median(self.n[stop])),
            "mean_seeds": round(float(self.n[stop].mean()), 2),
        }


def below(n: int, shift: float, t: float) -> float:
    """P(T' < t) of Student's non-central t; NaN deep in a tail is 0 or 1."""
    found = float(nctdtr(n - 1, shift, t))
    return float(t > shift) if math.isnan(found) else found


def fixed_seeds(truth: float, margin: float, power: float) -> int:
    """The least seeds with which one look decides as often, by a difference or by `same`; never below the least."""
    n = LEAST
    while True:
        root = math.sqrt(n)
        apart, alike = -float(stdtrit(n - 1, ALPHA / 2)), -float(stdtrit(n - 1, ALPHA))
        different = below(n, truth * root, -apart) + 1 - below(n, truth * root, apart)
        same = below(n, (truth - margin) * root, -alike) - below(n, (truth + margin) * root, alike)
        if max(different, same) >= power:
            return n
        n += 1


def looked_at(studies: int) -> list[Cell]:
    """Every combination of planned end, method, shape, margin and truth."""
    found: list[Cell] = []
    for cap in CAPS:
        looks = sequential.look_sizes(LEAST, cap)
        quantiles = {name: make(looks, cap) for name, make in METHODS.items()}
        for shape in SHAPES:
            simulated = Studies(shape, looks, studies)
            for margin in MARGINS:
                for truth in dict.fromkeys((0.0, margin, *(DIFFERENCES if margin == MARGINS[0] else ()))):
                    for name in METHODS:
                        result = simulated.outcome(truth, margin, quantiles[name])
                        cell = {"end": cap, "method": name, "shape": shape, "margin": margin, "truth": truth, **result}
                        if shape == "normal" and truth != margin:
                            power = min(result["different"] + result["same"], 1 - 1 / studies)
                            cell["power"] = round(power, 4)
                            cell["ratio"] = round(result["median_seeds"] / fixed_seeds(truth, margin, power), 3)
                        found.append(cell)
    return found


def extended(studies: int) -> list[Cell]:
    """A plain study, extended by --seeds again and again while it is undecided: false findings without a difference."""
    found: list[Cell] = []
    for looks in EXTENSIONS:
        for shape in SHAPES:
            simulated = Studies(shape, looks, studies)
            for margin in (0.25, 0.5):
                cell: Cell = {"looks": list(looks), "shape": shape, "margin": margin}
                for name, make in (("counted", spending), ("not counted", naive)):
                    cell[name] = round(simulated.outcome(0.0, margin, make(looks, looks[0]))["different"], 4)
                found.append(cell)
    return found


def worst(cells: list[Cell], method: str) -> dict[str, float]:
    """The worst figure of a method for each promise."""
    own = [cell for cell in cells if cell["method"] == method]
    timed = [cell for cell in own if cell.get("power", 0) >= 0.25]
    return {
        "false_positives": max(cell["different"] for cell in own if cell["truth"] == 0),
        "wrong_same": max(cell["same"] for cell in own if cell["truth"] == cell["margin"]),
        "coverage": min(cell["coverage"] for cell in own),
        "ratio": max(cell["ratio"] for cell in timed),
        "ratio_at_1_sd": max(cell["ratio"] for cell in timed if cell["truth"] == 1.0),
    }


def main() -> None:
    """Simulate, print the worst cells, keep them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--studies", type=int, default=100_000)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    start = time.perf_counter()
    cells, extensions = looked_at(options.studies), extended(options.studies)
    skewed = lopsided.cells(min(options.studies, 20_000))
    stopped = futility.cells(max(10, min(options.studies // 100, 1_000)))
    result = {
        "date": date.today().isoformat(),
        "command": f"python benchmarks/truth.py --studies {options.studies}",
        "studies": options.studies,
        "python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__,
        "seconds": round(time.perf_counter() - start, 1),
        "worst": {name: worst(cells, name) for name in METHODS},
        "extended": extensions,
        "lopsided": skewed,
        "futility": stopped,
        "cells": [cell for cell in cells if cell["method"] == "spending"],
    }  # fmt: skip
    print(json.dumps({"worst": result["worst"], "seconds": result["seconds"]}, indent=1))
    if options.out:
        from truth_page import page

        lines = [f" {json.dumps(key)}: {_compact(value)}" for key, value in result.items()]
        (options.out / "truth.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
        (options.out / "truth.md").write_text(page(result, cells))


def _compact(value: Any) -> str:
    if isinstance(value, list) and value:
        return "[\n  " + ",\n  ".join(json.dumps(each) for each in value) + "\n ]"
    return json.dumps(value)


if __name__ == "__main__":
    main()
