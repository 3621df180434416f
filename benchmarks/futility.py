"""Is the chance behind "futile" right? Studies that stop as futile go on here, to see how many would have been decided.

    python benchmarks/futility.py [--studies 1000]

`verdict.stopping.chance_to_decide` is called at every look, as a study does. Truths are fixed, or drawn anew for each
study from a normal of spread 0.5: a predictive chance can be right on average over truths only. At a fixed truth, what
counts is the share of studies that lose a decision by stopping.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from tiebreak.verdict import sequential
from tiebreak.verdict.power import quantile
from tiebreak.verdict.statistics import ALPHA, Sample
from tiebreak.verdict.stopping import FUTILE, chance_to_decide

Cell = dict[str, Any]
LEAST = 6
CAPS = (20, 60)
MARGINS = (0.1, 0.25, 0.5)
TRUTHS: tuple[float | None, ...] = (None, 0.0, 0.25, 0.5, 1.0)  # None: drawn for each study
SPREAD = 0.5  # of the truths that are drawn


def decided_at(differences: np.ndarray[Any, Any], margin: float, looks: tuple[int, ...], cap: int) -> int | None:
    """The first look that decides."""
    for k, n in enumerate(looks):
        now = sequential.Looks(looks[: k + 1], cap)
        some = differences[:n]
        mean, error = float(some.mean()), float(some.std(ddof=1)) / n**0.5
        if abs(mean) > -quantile(n, now.level(ALPHA) / 2) * error:
            return k
        if abs(mean) - quantile(n, now.level(2 * ALPHA) / 2) * error < margin:
            return k
    return None


def cell(truth: float | None, margin: float, cap: int, studies: int) -> Cell:
    """What stopping as futile says and does, over many studies."""
    looks = sequential.look_sizes(LEAST, cap)
    stream = np.random.default_rng([20, cap, int(100 * margin), int(100 * truth) if truth is not None else 999])
    said, lost, decided = [], 0, 0
    for _ in range(studies):
        true = truth if truth is not None else SPREAD * stream.standard_normal()
        differences = true + stream.standard_normal(cap)
        end = decided_at(differences, margin, looks, cap)
        decided += end is not None
        for k in range(min(len(looks) - 1, len(looks) if end is None else end)):
            sample = Sample(a=differences[: looks[k]], b=np.zeros(looks[k]), goal="max")
            chance = chance_to_decide(sample, margin, sequential.Looks(looks[: k + 1], cap), looks[k + 1 :], 1)
            if chance < FUTILE:
                said.append(chance)
                lost += end is not None
                break
    return {
        "truth": "drawn" if truth is None else truth, "margin": margin, "end": cap, "studies": studies,
        "futile": len(said) / studies, "said": round(float(np.mean(said)), 4) if said else None,
        "would_decide": round(lost / len(said), 4) if said else None,
        "power": decided / studies, "power_lost": lost / studies,
    }  # fmt: skip


def cells(studies: int) -> list[Cell]:
    """Every combination of planned end, margin and truth."""
    return [cell(truth, margin, cap, studies) for truth in TRUTHS for cap in CAPS for margin in MARGINS]


def table(found: list[Cell]) -> str:
    """The cells as Markdown."""
    rows = [
        "| true difference | margin | most seeds | stopped as futile | chance said | would have been decided | "
        "power | of that lost |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in found:
        truth = f"drawn (sd {SPREAD})" if each["truth"] == "drawn" else f"{each['truth']} sd"
        said, after = ("–" if each[key] is None else f"{100 * each[key]:.1f} %" for key in ("said", "would_decide"))
        shares = [f"{100 * each[key]:.1f} %" for key in ("futile", "power", "power_lost")]
        rows.append(
            f"| {truth} | {each['margin']} sd | {each['end']} | {shares[0]} | {said} | {after} | "
            f"{shares[1]} | {shares[2]} |"
        )
    return "\n".join(rows)


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--studies", type=int, default=1000)
    found = cells(parser.parse_args().studies)
    print(json.dumps(found))
    print(table(found))


if __name__ == "__main__":
    main()
