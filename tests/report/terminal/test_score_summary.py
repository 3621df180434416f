from __future__ import annotations

import io
import json
import re

from rich.console import Console

from tiebreak.report.terminal import score_summary
from tiebreak.verdict.scores import Pairing, Scores
from tiebreak.verdict.table_verdict import TableQuestion, table_verdict

A: dict[int | str, float] = {0: 0.91, 1: 0.92, 2: 0.93, 3: 0.915, 4: 0.925, 5: 0.935, 6: 0.92}
B = {seed: score - 0.1 + 0.001 * int(seed) for seed, score in A.items()}


def printed(sets: dict[str, Scores], margin: float = 0.01, pairing: Pairing = "auto") -> list[str]:
    file = io.StringIO()
    verdict = table_verdict(sets, TableQuestion(name="scores.csv", margin=margin, pairing=pairing))
    score_summary.print_compared(Console(file=file, width=400, highlight=False), verdict, sets)
    return file.getvalue().splitlines()


def test_the_arms_come_first_with_every_seed_then_the_evidence() -> None:
    lines = printed({"": {"pool": A, "strided": B}})
    assert lines[0].startswith("pool: mean 0.9221 ± 0.00859")
    assert "0: 0.91, 1: 0.92" in lines[1]
    assert lines[5] == "pool vs strided: pool is better"
    assert lines[6].startswith("  difference +0.097, 95 % interval +0.09")
    assert lines[6].endswith("over 7 paired seeds")
    assert re.search(r"paired t-test.*pool beats .*strided.*99 %", lines[7])


def test_an_undecided_pair_says_how_many_more_seeds_and_why() -> None:
    lines = printed({"": {"pool": {0: 0.9, 1: 0.8}, "strided": {0: 0.7, 1: 0.75, 2: 0.6}}}, pairing="paired")
    assert any("needs at least 4 more seeds" in line for line in lines)
    assert any(re.search("2 seeds .* 6 needed", line) for line in lines)
    assert any("1 run of strided" in line for line in lines)


def test_welch_and_data_sets_are_named() -> None:
    other: dict[int | str, float] = {int(seed) + 50: score for seed, score in B.items()}
    assert any("unpaired runs (Welch" in line for line in printed({"": {"pool": A, "strided": other}}))
    lines = printed({f"set{number}": {"pool": A, "strided": B} for number in range(6)})
    assert any(re.search(r"pool vs strided over 6 data sets: pool is better", line) for line in lines)
    assert any("Wilcoxon" in line for line in lines)
    assert any("apart" in line for line in lines)


def test_names_cannot_drive_the_terminal_or_the_markup() -> None:
    lines = printed({"": {"[red]po\x1b[31mol": A, "stri\x07ded": B}})
    assert any(line.startswith(r"[red]po\x1b[31mol vs stri\x07ded") for line in lines)
    assert "\x1b" not in "".join(lines)


def test_the_form_for_programs_has_the_keys_of_a_verdict_and_every_score() -> None:
    sets: dict[str, Scores] = {"": {"pool": A, "strided": B}}
    verdict = table_verdict(sets, TableQuestion(name="scores.csv", margin=0.01))
    content = json.loads(score_summary.compared_json(verdict, sets))
    assert content.keys() == {*type(verdict).model_fields, "scores"}
    assert len(content["scores"]) == 14
    assert content["comparisons"][0]["verdict"] == "a"
