from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support import tiny
from tiebreak.data.labelled import labelled_data
from tiebreak.errors import TiebreakError


def test_a_file_is_split_by_label_and_repeated_rows_are_dropped(tmp_path: Path) -> None:
    rows = [f"word{number} good,{'yes' if number % 4 else 'no'}" for number in range(40)]
    path = tmp_path / "own.csv"
    path.write_text("\n".join(["text,label", *rows, rows[0]]) + "\n", "utf-8")
    data = labelled_data.load(str(path))
    assert data.sizes == {"train": 32, "val": 4, "test": 4}
    assert data.class_names == ("no", "yes")
    assert [int((data.labels[split] == 0).sum()) for split in ("train", "val", "test")] == [8, 1, 1]
    assert data.checksum == labelled_data.checksum(str(path))
    assert data.words[:3] == ("<pad>", "<unk>", "good")
    assert (data.tokens["test"][:, 0] == labelled_data.UNKNOWN).all()  # each has a word of its own
    assert data.notes == ("1 repeated row dropped",)
    assert data.description()[-1].split() == ["yes:", "24", "train,", "3", "val,", "3", "test"]


def test_a_folder_is_read_as_given_and_long_texts_are_cut(tmp_path: Path) -> None:
    folder = tiny.write_reviews(tmp_path) / "reviews"
    data = labelled_data.load(str(folder), length=2, vocabulary=4)
    assert data.sizes == tiny.SIZES
    assert len(data.words) == 4
    assert data.tokens["train"].shape == (tiny.SIZES["train"], 2)
    assert "cut off" in data.description()[2]
    (folder / "notes.md").touch()
    (folder / "val.csv").write_text("text,label,who\n" + "good,yes,me\n" * 2, "utf-8")
    (first, second) = labelled_data.load(str(folder)).notes
    assert "val.csv: who" in first
    assert "notes.md" in second
    assert np.array_equal(labelled_data.numbers("Good zzz", {"good": 2}, 4), np.array([2, labelled_data.UNKNOWN, 0, 0]))


def test_a_label_that_training_lacks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("text,label,split\na,x,train\nb,y,train\nc,x,val\nd,z,test\n", "utf-8")
    with pytest.raises(TiebreakError, match="'z' does not occur in training"):
        labelled_data.load(str(path))
