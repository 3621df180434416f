"""Texts that are numbered piece by piece: the same tokens as of the whole text, in little memory."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tiebreak.data.text import token_numbers
from tiebreak.data.text.token_numbers import Numbering
from tiebreak.data.text.tokens import Level, split_text
from tiebreak.errors import TiebreakError

LETTERS = "ab,'-<> \n\t\u2028\u00a0é’漢😀"
MEMORY = """
import resource, sys
from tiebreak.data.text.corpus import load
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
data = load(sys.argv[1], level=sys.argv[2])
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(sum(part.nbytes for part in data.tokens.values()) >> 10, after - before)
"""


def tokens(numbering: Numbering, pieces: Sequence[str]) -> list[str]:
    numbers = numbering.add(pieces)
    return [numbering.kinds[number] for number in numbers]


@pytest.mark.parametrize("marks", [False, True])
@pytest.mark.parametrize("level", ["word", "character"])
@given(text=st.text(LETTERS), cuts=st.lists(st.integers(0, 40), max_size=5))
@example(text="a \nb", cuts=[2])
@example(text="a \n\n\nb\n \n", cuts=[2, 3, 4, 5])
def test_the_tokens_of_pieces_are_those_of_the_whole(level: Level, marks: bool, text: str, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise(places)]
    assert tokens(Numbering("x", level, marks), pieces) == split_text("".join(pieces), level, marks)


def test_several_texts_share_their_numbers() -> None:
    numbering = Numbering("x", "word", marks=False)
    first, second = numbering.add(["a b"]), numbering.add(["b c"])
    assert [numbering.kinds[number] for number in (*first, *second)] == ["a", "b", "<eos>", "b", "c", "<eos>"]


def test_what_is_hardly_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_numbers, "LIMIT_KINDS", 10)
    monkeypatch.setattr(token_numbers, "LIMIT_UNBROKEN", 100)
    with pytest.raises(TiebreakError, match="different words"):
        Numbering("x", "word", marks=False).add([" ".join(map(str, range(20)))])
    with pytest.raises(TiebreakError, match="without a blank"):
        Numbering("x", "word", marks=False).add(["y" * 60, "z" * 60])
    Numbering("x", "character", marks=False).add(["y" * 60, "z" * 60])


@pytest.mark.slow
@pytest.mark.parametrize("level", ["word", "character"])
def test_a_text_of_250_megabytes_takes_little_memory_beyond_its_tokens(tmp_path: Path, level: str) -> None:
    line = " ".join(f"w{number}" for number in range(1000)) + "\n"
    with (tmp_path / "a.txt").open("w") as file:
        for _ in range(250_000_000 // len(line)):
            file.write(line)
    command = [sys.executable, "-c", MEMORY, str(tmp_path / "a.txt"), level]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    size, used = map(int, done.stdout.split())
    assert used < size + 700_000  # kB
