"""The page that `truth.py` writes: what is promised, what was found, cells above a limit first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import futility

Cell = Mapping[str, Any]
LIMITS = {"false_positives": 0.05, "wrong_same": 0.05, "coverage": 0.95, "ratio": 1.15, "ratio_at_1_sd": 0.65}
FUTILE = 0.1
NAMES = {"spending": "alpha spending (ours)", "bonferroni": "Bonferroni over the looks", "anytime": "anytime-valid"}


def page(result: Mapping[str, Any], cells: Sequence[Cell]) -> str:
    """The whole page."""
    studies = result["studies"]
    error = math.sqrt(0.05 * 0.95 / studies)
    futile = result["futility"]
    parts = [
        "# What verdicts promise, simulated",
        f"`make truth` ({result['date']}, {studies:,} studies a cell, {result['seconds']:.0f} s; standard error of "
        f"5 %: {100 * error:.2f} points). Differences have spread 1; planned ends are 20, 60 and 100 seeds. All cells "
        "of our method: [truth.json](truth.json).",
        "## Above a limit",
        "\n".join([*_above(cells), *_above_extended(result["extended"]), *_above_futile(futile)]) or "None.",
        "## Worst cell of each method",
        _worst(result["worst"]),
        "Seeds are the median, over the fixed design of one look at 5 % with the same power, where that power is at "
        "least 25 %. The other two methods see the same differences.",
        "## Median seeds over the fixed design, normal differences, margin 0.1 sd",
        _ratios(result["cells"]),
        "## A plain study that is extended by `--seeds` while it is undecided, without a difference",
        "False findings: each look counted as one (as Tiebreak does), and not counted.",
        _extended(result["extended"]),
        "## Stopped as futile",
        f"A study stops when the chance to be decided by its most seeds is below 10 % ({futile[0]['studies']:,} "
        "studies a cell; here they went on, to see). Over truths that are drawn anew for each study the chance should "
        "be right, and less than 10 % decided later; at a fixed truth it cannot be right, and what counts is the share "
        "of all studies that lose their decision.",
        futility.table(futile),
        "## Skewed differences of mean 0: one look at 5 %",
        "Share of studies that call the mean different from 0. No method keeps 5 % with few seeds of a lognormal; "
        "ours requires both t and Hall's test where the estimated skewness shows it, and never errs more often than t.",
        _lopsided(result["lopsided"]),
    ]
    return "\n\n".join(parts) + "\n"


def _above_extended(cells: Sequence[Cell]) -> list[str]:
    return [
        f"- false findings {100 * cell['counted']:.2f} % when extended: {', '.join(map(str, cell['looks']))} seeds "
        f"({cell['shape']}, margin {cell['margin']})"
        for cell in cells
        if cell["counted"] > LIMITS["false_positives"]
    ]


def _above_futile(cells: Sequence[Cell]) -> list[str]:
    return [
        f"- of studies stopped as futile {100 * cell['would_decide']:.1f} % would have been decided (truths drawn, "
        f"margin {cell['margin']}, end {cell['end']})"
        for cell in cells
        if cell["truth"] == "drawn" and (cell["would_decide"] or 0) > FUTILE
    ]


def _above(cells: Sequence[Cell]) -> list[str]:
    own = [cell for cell in cells if cell["method"] == "spending"]
    lines = []
    for cell in own:
        where = f"{cell['shape']}, end {cell['end']}, margin {cell['margin']}, true difference {cell['truth']}"
        if cell["truth"] == 0 and cell["different"] > LIMITS["false_positives"]:
            lines.append(f"- false findings {100 * cell['different']:.2f} % ({where})")
        if cell["truth"] == cell["margin"] and cell["same"] > LIMITS["wrong_same"]:
            lines.append(f"- wrong `same` {100 * cell['same']:.2f} % ({where})")
        if cell["coverage"] < LIMITS["coverage"]:
            lines.append(f"- coverage {100 * cell['coverage']:.2f} % ({where})")
        if cell.get("power", 0) >= 0.25 and cell["ratio"] > LIMITS["ratio"]:
            lines.append(f"- median seeds {cell['ratio']:.2f} times the fixed design ({where})")
        if cell["truth"] == 1.0 and cell.get("power", 0) >= 0.25 and cell["ratio"] > LIMITS["ratio_at_1_sd"]:
            lines.append(
                f"- median seeds {cell['ratio']:.2f} times the fixed design at 1 sd; the aim is 0.65 ({where})"
            )
    return lines


def _worst(worst: Mapping[str, Mapping[str, float]]) -> str:
    rows = [
        "| | false findings | wrong `same` | coverage | seeds, worst | seeds at 1 sd, worst |",
        "|---|---|---|---|---|---|",
    ]
    for name, item in worst.items():
        shares = " | ".join(f"{100 * item[key]:.2f} %" for key in ("false_positives", "wrong_same", "coverage"))
        rows.append(f"| {NAMES[name]} | {shares} | {item['ratio']:.2f} | {item['ratio_at_1_sd']:.2f} |")
    return "\n".join([*rows, "| promised | ≤ 5 % | ≤ 5 % | ≥ 95 % | ≤ 1.15 | ≤ 0.65 |"])


def _ratios(cells: Sequence[Cell]) -> str:
    truths = sorted(
        {cell["truth"] for cell in cells if cell["margin"] == 0.1 and "ratio" in cell and cell["truth"] > 0}
    )
    rows = [f"| end | {' | '.join(f'{truth:g} sd' for truth in truths)} |", "|---" * (len(truths) + 1) + "|"]
    for end in sorted({cell["end"] for cell in cells}):
        found = {c["truth"]: c for c in cells if c["end"] == end and c["margin"] == 0.1 and "ratio" in c}
        shown = [f"{found[truth]['ratio']:.2f} ({100 * found[truth]['power']:.0f} %)" for truth in truths]
        rows.append(f"| {end} | {' | '.join(shown)} |")
    return "\n".join([*rows, "", "In brackets: the power."])


def _extended(cells: Sequence[Cell]) -> str:
    rows = ["| looks | differences | margin | counted | not counted |", "|---|---|---|---|---|"]
    for cell in cells:
        looks = ", ".join(map(str, cell["looks"]))
        shares = f"{100 * cell['counted']:.1f} % | {100 * cell['not counted']:.1f} %"
        rows.append(f"| {looks} | {cell['shape']} | {cell['margin']} sd | {shares} |")
    return "\n".join(rows)


def _lopsided(cells: Sequence[Cell]) -> str:
    keys = ("t", "ours", "wider", "johnson", "hall", "bootstrap_t")
    rows = ["| differences | seeds | t | ours | both t and Hall | Johnson | Hall | bootstrap-t |", "|---" * 8 + "|"]
    for cell in cells:
        rows.append(f"| {cell['shape']} | {cell['seeds']} | {' | '.join(f'{100 * cell[key]:.1f} %' for key in keys)} |")
    return "\n".join(rows)
