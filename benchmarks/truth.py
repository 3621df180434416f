"""What `--until-decided` promises, simulated: 10,000 studies a cell, whose true difference is known.

    python benchmarks/truth.py [--studies 10000] [--out benchmarks/results/truth.json]

Each study has paired differences of spread 1 (normal, Student's t with 3 degrees of freedom, difference of two exponential
scores), is looked at as `verdict.sequential` says, and stops at the first verdict. Beside it run two other ways on the same
differences: the same looks with alpha divided by Bonferroni over the looks, and an anytime-valid test (the e-process of the
t-test with a normal prior on the standardised difference; Lai 1976, Wang and Ramdas 2024), looked at after the same seeds.
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

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import nctdtr, stdtrit

from tiebreak.verdict import sequential

Array = NDArray[np.float64]
ALPHA, LEAST = 0.05, 6
CAPS = (20, 60, 100)
MARGINS = (0.1, 0.25, 0.5, 1.0)  # in standard deviations of the difference
DIFFERENCES = (0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
SHAPES: dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]] = {
    "normal": lambda stream, size: stream.standard_normal(size),
    "t3": lambda stream, size: stream.standard_t(3, size) / math.sqrt(3),
    "exponential": lambda stream, size: (stream.exponential(size=size) - stream.exponential(size=size)) / math.sqrt(2),
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
    return tuple(np.array([_e_quantile(n, 1 / level) for n in looks]) for level in (ALPHA, 2 * ALPHA))  # type: ignore[return-value]


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


def simulate(
    differences: Array, truth: float, margin: float, looks: tuple[int, ...], quantiles: tuple[Array, Array]
) -> dict[str, float]:
    """What happened in the studies [studies, seeds]."""
    n = np.array(looks)
    sums, squares = np.cumsum(differences, 1)[:, n - 1], np.cumsum(differences**2, 1)[:, n - 1]
    mean = sums / n
    se = np.sqrt(np.maximum(squares - n * mean**2, 0) / (n - 1) / n)
    apart, alike = quantiles
    different = np.abs(mean) > apart * se
    same = np.abs(mean) + alike * se < margin
    decided = different | same
    stop = np.where(decided.any(1), decided.argmax(1), len(looks) - 1)
    row = np.arange(len(mean))
    called_same = same[row, stop]
    half = (apart * se)[row, stop]
    return {
        "different": float((different[row, stop] & ~called_same).mean()),
        "same": float(called_same.mean()),
        "coverage": float((np.abs(mean[row, stop] - truth) <= half).mean()),
        "median_seeds": float(np.median(n[stop])),
        "mean_seeds": float(n[stop].mean()),
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
        apart, alike = -stdtrit(n - 1, ALPHA / 2), -stdtrit(n - 1, ALPHA)
        different = below(n, truth * root, -apart) + 1 - below(n, truth * root, apart)
        same = below(n, (truth - margin) * root, -alike) - below(n, (truth + margin) * root, alike)
        if max(different, same) >= power:
            return n
        n += 1


def cells(studies: int) -> list[dict[str, object]]:
    """Every combination of shape, planned end, margin and truth."""
    found: list[dict[str, object]] = []
    for cap in CAPS:
        looks = sequential.look_sizes(LEAST, cap)
        for name, make in METHODS.items():
            quantiles = make(looks, cap)
            for shape, draw in SHAPES.items():
                for margin in MARGINS:
                    for truth in (0.0, margin, *(DIFFERENCES if margin == 0.1 else ())):
                        stream = np.random.default_rng([cap, int(1000 * margin), int(1000 * truth)])
                        rows = draw(stream, (studies, cap)) + truth
                        result = simulate(rows, truth, margin, looks, quantiles)
                        power = min(result["different"] + result["same"], 1 - 1 / studies)
                        cell = {"end": cap, "method": name, "shape": shape, "margin": margin, "truth": truth, **result}
                        if shape == "normal":
                            cell["fixed_seeds"] = fixed_seeds(truth, margin, power)
                        found.append(cell)
    return found


def main() -> None:
    """Simulate, print the worst cells, keep all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    start = time.perf_counter()
    found = cells(options.studies)
    for name in METHODS:
        own = [cell for cell in found if cell["method"] == name]
        print(f"{name}: worst of {len(own)} cells, {options.studies:,} studies each")
        print(f"  A/A false positives     {max(c['different'] for c in own if c['truth'] == 0):.4f}")
        print(f"  wrong `same` at margin  {max(c['same'] for c in own if c['truth'] == c['margin']):.4f}")
        print(f"  coverage of the stop    {min(c['coverage'] for c in own):.4f}")
        timed = [c for c in own if "fixed_seeds" in c]
        for cell in timed:
            cell["ratio"] = round(cell["median_seeds"] / cell["fixed_seeds"], 3)
        for cap in CAPS:
            ratios = {
                c["truth"]: c["ratio"] for c in timed if c["end"] == cap and c["margin"] == 0.1 and c["truth"] >= 0.2
            }
            print(f"  median seeds / fixed, end {cap}: {ratios}")
        print(
            f"  largest ratio           {max(c['ratio'] for c in timed if c['truth'] != c['margin'] and c['different'] + c['same'] > 0.2)}"
        )
    about = {
        "date": date.today().isoformat(),
        "command": f"python benchmarks/truth.py --studies {options.studies}",
        "python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__,
        "seconds": round(time.perf_counter() - start, 1),
    }  # fmt: skip
    if options.out:
        options.out.write_text(json.dumps({**about, "cells": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
