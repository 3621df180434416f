from __future__ import annotations

import io
import json
import re
from dataclasses import replace

import numpy as np
from rich.console import Console

from tiebreak.report.terminal import listings
from tiebreak.tasks.reply import Answer, AttentionWeights, Reply
from tiebreak.verdict.scores import compare_scores
from tiebreak.verdict.statistics import Compared

A: dict[int | str, float] = {0: 0.91, 1: 0.92, 2: 0.93, 3: 0.915, 4: 0.925, 5: 0.935, 6: 0.92}
B = {seed: score - 0.1 + 0.001 * int(seed) for seed, score in A.items()}


def screen() -> tuple[io.StringIO, Console]:
    file = io.StringIO()
    return file, Console(file=file, width=120, highlight=False)


def printed(scores: dict[str, dict[int | str, float]], margin: float = 0.01) -> list[str]:
    file, console = screen()
    listings.print_compared(console, compare_scores(scores, margin=margin), margin)
    return file.getvalue().splitlines()


def test_a_decided_pair_is_told_with_its_evidence() -> None:
    lines = printed({"pool": dict(A), "strided": dict(B)})
    assert lines[0].startswith("pool vs strided: pool is better")
    assert lines[1].startswith("  difference +0.097, 95 % interval +0.09")
    assert lines[1].endswith("over 7 paired seeds")
    assert re.search(r"pool beats .*strided.* >99 %", lines[2])
    assert lines[3].startswith("margin 0.01")
    assert len(lines) == 4


def test_the_winner_may_be_the_second() -> None:
    assert printed({"strided": dict(B), "pool": dict(A)})[0] == "strided vs pool: pool is better"


def test_the_same_names_the_margin() -> None:
    assert printed({"pool": dict(A), "strided": dict(B)}, margin=0.2)[0].endswith("the same within ±0.2")


def test_an_undecided_pair_says_how_many_more_seeds_and_why() -> None:
    lines = printed({"pool": {0: 0.9, 1: 0.8}, "strided": {0: 0.7, 1: 0.75, 2: 0.6}})
    assert lines[0] == "pool vs strided: undecided"
    assert any("more seeds would decide" in line for line in lines)
    assert any(re.match("  note: 2 seeds .* 6 needed", line) for line in lines)
    assert any(re.match("  note: .*1 of strided", line) for line in lines)


def test_a_single_seed_has_a_difference_and_no_interval() -> None:
    lines = printed({"pool": {0: 0.9}, "strided": {0: 0.7}})
    assert lines[1] == "  difference +0.2, over 1 paired seed"


def test_an_end_of_exactly_0_is_open_unless_both_are() -> None:
    result = compare_scores({"pool": dict(A), "strided": dict(B)}, margin=0.01)[0][2]
    for low, high, shown in (
        (0.0, 0.2, "above 0 to +0.2"),
        (-0.2, 0.0, "-0.2 to below 0"),
        (0.0, 0.0, "0 to 0"),
    ):
        file, console = screen()
        listings.print_compared(console, [("a", "b", replace(result, low=low, high=high))], 0.01)
        assert f"95 % interval {shown}," in file.getvalue()


def test_names_cannot_drive_the_terminal_or_the_markup() -> None:
    lines = printed({"[red]po\x1b[31mol": dict(A), "stri\x07ded": dict(B)})
    assert lines[0].startswith(r"[red]po\x1b[31mol vs stri\x07ded")
    assert "\x1b" not in "".join(lines)


def test_the_form_for_programs_has_every_field() -> None:
    compared = compare_scores({"pool": dict(A), "strided": dict(B)}, margin=0.01)
    (row,) = json.loads(listings.compared_json(compared))
    assert row.keys() == {"a", "b", *Compared.__dataclass_fields__}
    assert (row["a"], row["b"], row["verdict"], row["seeds"]) == ("pool", "strided", "a", 7)


def test_data_sets_are_two_lines_each_and_paths_are_not_broken() -> None:
    file, console = screen()
    path = "/data/" + "x" * 200
    listings.print_data(console, [("mnist", "digits [of] people", "CC BY", path), ("toy", "a toy", "none", "embedded")])
    assert file.getvalue().splitlines() == [
        "mnist  digits [of] people",
        f"  CC BY; {path}",
        "toy  a toy",
        "  none; embedded",
    ]


def test_a_report_in_the_list_of_data_is_introduced() -> None:
    file, console = screen()
    listings.print_data(console, [("pairs", "the files of report R3", "CC BY", "embedded")])
    assert "student reports" in " ".join(file.getvalue().split())


def test_the_bar_of_a_download_counts_bytes() -> None:
    file = io.StringIO()
    console = Console(file=file, width=120, force_terminal=True)
    with listings.download_bar(console, "octmnist") as bar:
        bar.total = 2_000_000
        bar.update(500_000)
        bar.reset()
        bar.update(1_500_000)
        bar.close()
    assert bar.total == 2_000_000
    assert "octmnist" in file.getvalue()
    assert "1.5/2.0 MB" in file.getvalue()


def test_answers_are_listed_most_likely_first_and_cannot_drive_the_terminal() -> None:
    file, console = screen()
    answers = [("se\x1b[31mven", 0.9), *((str(number), 0.01) for number in range(11))]
    reply = Reply(answers=[Answer(text=text, probability=probability) for text, probability in answers])
    listings.print_reply(console, reply, "pool (seed 0)")
    lines = file.getvalue().splitlines()
    assert lines[0].split()[-3:-1] == ["90.0", "%"]
    assert lines[0].startswith(r"se\x1b[31mven")
    assert lines[-2:] == ["and 2 more", "answered by pool (seed 0)"]
    assert "\x1b" not in file.getvalue()


def test_where_a_network_looked_is_a_map_of_letters() -> None:
    file, console = screen()
    attention = AttentionWeights(
        weights=np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.3]], np.float32), rows=("a", "\x1b"), columns=("x", "y", ">")
    )
    listings.print_reply(console, Reply(answers=[Answer(text="ab")], note="read as 'xy'", attention=attention), "plain")
    lines = file.getvalue().splitlines()
    assert lines[:4] == ["ab", "   xy>", " a █", "    ▒░"]
    assert lines[-1] == "answered by plain; read as 'xy'"
    legend = " ".join(lines[4:-1])
    assert "row" in legend
    assert "column" in legend
    assert "█" in legend
