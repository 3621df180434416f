from __future__ import annotations

import io

import numpy as np
from rich.console import Console

from tiebreak.report.terminal import listings
from tiebreak.tasks.reply import Answer, AttentionWeights, Reply


def screen() -> tuple[io.StringIO, Console]:
    file = io.StringIO()
    return file, Console(file=file, width=120, highlight=False)


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
