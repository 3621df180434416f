"""What a user's own data looks made for."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tiebreak.data import families
from tiebreak.data.fetch import find_source
from tiebreak.data.images import image_files
from tiebreak.data.speech import audio
from tiebreak.errors import TiebreakError
from tiebreak.study import registry

pytestmark = pytest.mark.usefixtures("empty_cache")


@pytest.mark.parametrize(
    ("made", "path", "family"),
    [
        ("speech/transcripts.tsv", "speech", "recogniser"),
        ("speech/train/transcripts.tsv", "speech", "recogniser"),
        ("speech/val/transcripts.tsv", "speech", "recogniser"),
        ("speech/test/transcripts.tsv", "speech", "recogniser"),
        ("speech/transcripts.tsv", "speech/transcripts.tsv", "recogniser"),
        ("speech/one.FLAC", "speech", "recogniser"),
        ("speech/ann/one.wav", "speech", "recogniser"),
        ("speech/one.wav", "speech/one.wav", "recogniser"),
        ("lj/wavs/LJ001-0001.wav", "lj", "recogniser"),
        ("speech/far/below/one.wav", "speech", "classifier"),
        ("speech/.hidden.wav", "speech", "classifier"),
        ("graph/edges.csv", "graph", "node-classifier"),
        ("graph/labels.csv", "graph", "node-classifier"),
        ("graph/edges.csv", "graph/edges.csv", "node-classifier"),
        ("texts.csv", "texts.csv", "text-classifier"),
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


def test_one_glance_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cover beside the sounds makes no pictures of them, a picture in a class does; big folders are cut short."""
    for made in ("speech/cover.png", "speech/one.wav", "pictures/cats/1.png", "pictures/dogs/bark.wav"):
        (tmp_path / made).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / made).touch()
    assert families.likely(tmp_path / "speech") == "recogniser"
    assert families.likely(tmp_path / "pictures") == "classifier"
    monkeypatch.setattr(families, "MOST_ENTRIES", 0)
    assert families.likely(tmp_path / "speech") == "classifier"


def test_every_sound_and_picture_that_is_read_is_known_by_its_ending() -> None:
    assert {*audio.SUFFIXES} <= {*families.SOUNDS}
    assert {*image_files.SUFFIXES} == {*families.PICTURES}


@pytest.mark.parametrize("name", [name for name, entry in registry.DATA.items() if entry.embedded])
def test_embedded_data_has_the_licence_that_the_list_shows(name: str) -> None:
    try:
        data = families.load(registry.DATA[name].family, name, None)
    except TiebreakError as error:
        pytest.skip(str(error))  # its package is not installed
    source = find_source(name)
    assert (data.licence, data.citation) == (source.licence, source.citation)
    assert data.licence


def test_files_are_found_by_the_module_that_knows_them(tmp_path: Path) -> None:
    assert families.locate("mnist5k", None) == {}
    (tmp_path / "mnist.npz").touch()
    assert families.locate("mnist", tmp_path) == {"mnist.npz": tmp_path / "mnist.npz"}
    assert not families.verify("mnist", tmp_path)["mnist.npz"].official
    (tmp_path / "metadata.csv").touch()
    assert families.locate("spoken-ljspeech", tmp_path) == {"metadata.csv": tmp_path / "metadata.csv"}
    assert families.verify("spoken-ljspeech", tmp_path) == {}
    assert families.FINDERS.keys() <= registry.DATA.keys()


def test_every_family_that_is_guessed_has_a_loader_and_one_task() -> None:
    guessed = {*families.INSIDE, *families.ENDINGS.values(), "classifier"}
    assert guessed == families.MODULES.keys()
    assert sorted(task.family for task in registry.TASKS.values()) == sorted(families.MODULES)
