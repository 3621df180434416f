"""What a user's own data looks made for."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tiebreak import names
from tiebreak.data import families


@pytest.mark.parametrize(
    ("made", "path", "family"),
    [
        ("speech/transcripts.tsv", "speech", "recogniser"),
        ("speech/train/transcripts.tsv", "speech", "recogniser"),
        ("graph/edges.csv", "graph", "node-classifier"),
        ("pairs/train.tsv", "pairs", "translator"),
        ("text/train.txt", "text", "language"),
        ("pictures/cats/1.png", "pictures", "classifier"),
        ("pairs.tsv", "pairs.tsv", "translator"),
        ("novel.TXT", "novel.TXT", "language"),
        ("broken.npz", "broken.npz", "classifier"),
        ("there.txt", "not-there", "classifier"),
    ],
)
def test_names_tell_the_family(made: str, path: str, family: str, tmp_path: Path) -> None:
    (tmp_path / made).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / made).write_text("")
    assert families.likely(tmp_path / path) == family


@pytest.mark.parametrize(("key", "family"), [("edges", "node-classifier"), ("train_images", "classifier")])
def test_arrays_tell_the_family(key: str, family: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as arrays:
        arrays.writestr(f"{key}.npy", b"")
    assert families.likely(tmp_path / "a.npz") == family


def test_a_damaged_file_is_left_to_the_loader(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as arrays:
        arrays.writestr("edges.npy", b"")
    whole = (tmp_path / "a.npz").read_bytes()
    for number, end in enumerate(range(len(whole))):
        (tmp_path / f"{number}.npz").write_bytes(whole[:end] + b"?" + whole[end + 1 :])
        assert families.likely(tmp_path / f"{number}.npz") in ("classifier", "node-classifier")


def test_every_family_that_is_guessed_has_a_loader_and_one_task() -> None:
    guessed = {*families.INSIDE, *families.ENDINGS.values(), "classifier"}
    assert guessed == families.MODULES.keys()
    assert sorted(task.family for task in names.TASKS.values()) == sorted(families.MODULES)
