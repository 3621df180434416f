from __future__ import annotations

from pathlib import Path

import pytest

from tiebreak.data.labelled.labelled_files import Labelled, further_columns, is_labelled, read_labelled
from tiebreak.errors import TiebreakError


def written(folder: Path, text: str) -> Path:
    path = folder / "own.csv"
    path.write_text(text, "utf-8")
    return path


def test_rows_are_read_with_quotes_line_breaks_and_further_columns(tmp_path: Path) -> None:
    path = written(tmp_path, 'id,Label,text\n1,yes,"a, ""b""\nc"\n2,no, d \n')
    assert read_labelled(path) == [Labelled('a, "b"\nc', "yes"), Labelled("d", "no")]
    assert is_labelled(path)
    assert further_columns(path) == ["id"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("text", "label")),
        ("a,b\n1,2\n", ("line 1", "no column 'text'", "expected text, label", "found a, b", "own-task.md")),
        ("text,text,label\n1,2,3\n", ("line 1", "2 columns 'text'")),
        ("arm,seed,score\na,0,0.9\n", ("line 1", "tiebreak compare")),
        ("text,label\n", ("no rows",)),
        ("text,label\nhello,\n", ("line 2", "label")),
        ("text,label\n ,yes\n", ("line 2", "text")),
        ('text,label\n"open,yes\n', ("line", "text")),
        ("text,label,split\na,b,trian\n", ("line 2", "'trian'", "train")),
        ("text,label,split\na,b,train\nc,d,\n", ("1 rows", "split")),
    ],
)
def test_a_wrong_file_is_one_line_with_file_and_place(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(TiebreakError) as caught:
        read_labelled(written(tmp_path, text))
    assert "own.csv" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)
