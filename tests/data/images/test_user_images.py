from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from support import tiny
from tiebreak.cli import app
from tiebreak.data.images.image_data import checksum
from tiebreak.data.images.image_data import load as load_images
from tiebreak.data.images.user_images import find_own
from tiebreak.errors import TiebreakError
from tiebreak.plan.planner import data_checksum, make_plan, plan_inputs
from tiebreak.study import parsing
from tiebreak.study.registry import is_path
from tiebreak.study.schema import Study

CLAIM = {"id": "c", "text": "It does.", "comparison": "pool vs strided"}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TIEBREAK_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    tiny.write_data(tmp_path)
    return (tmp_path / "pneumoniamnist.npz").rename(tmp_path / "own.npz")


@pytest.fixture
def own_folder(tmp_path: Path) -> Path:
    for name, level in (("dark", 20), ("light", 200)):
        (tmp_path / "own" / name).mkdir(parents=True)
        for index in range(10):
            Image.fromarray(np.full((28, 28), level + index, np.uint8)).save(tmp_path / "own" / name / f"{index}.png")
    return tmp_path / "own"


@pytest.mark.parametrize("name", ["a/b", "./a", "/a", "a/", "a\\b", "a.npz", "..", ".", "~/a"])
def test_a_path_is_known_by_its_form(name: str) -> None:
    assert is_path(name)


@pytest.mark.parametrize("name", ["mnist", "octmnits", "npz", "a.npz.zip", "", "a.b", "kuzushiji-kanji10", "..."])
def test_a_name_is_no_path(name: str) -> None:
    assert not is_path(name)


def test_a_file_is_found_from_here_then_from_the_data_folders(
    tmp_path: Path, own_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("data", "more"):
        (tmp_path / folder).mkdir()
    assert find_own("own.npz") == Path("own.npz")
    own_file.rename(tmp_path / "data" / "own.npz")
    assert find_own("own.npz", tmp_path / "data") == tmp_path / "data" / "own.npz"
    assert find_own("data/own.npz") == Path("data/own.npz")
    monkeypatch.setenv("TIEBREAK_DATA", "data")
    assert find_own("own.npz", tmp_path / "more") == Path("data/own.npz")
    monkeypatch.setenv("HOME", str(tmp_path / "data"))
    assert find_own("~/own.npz") == tmp_path / "data" / "own.npz"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("./own", "./own: no such file or folder, from here or from --data-dir"),
        ("a\n/b", "a\\n/b: no such file or folder, from here or from --data-dir"),
        ("a\0/b", "a\\x00/b: no such file or folder, from here or from --data-dir"),
        ("/dev/null", "/dev/null: neither a file nor a folder"),
        ("./" + "x" * 300, f"./{'x' * 300}: cannot look there: File name too long"),
    ],
    ids=["nothing", "newline", "null", "device", "too long"],
)
def test_a_path_to_nothing(name: str, line: str) -> None:
    for function in (checksum, load_images):
        with pytest.raises(TiebreakError) as caught:
            function(name)
        assert str(caught.value) == line


def test_a_link_to_itself(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(TiebreakError, match="no such file or folder"):
        load_images("./loop")


def test_an_npz_file_of_ones_own(own_file: Path) -> None:
    data = load_images("own.npz")
    assert (data.name, data.sizes) == ("own.npz", tiny.SIZES)
    assert (data.classes, data.class_names) == (2, ("0", "1"))
    assert (data.official, data.split_rule) == (None, "as in the file")
    assert data.checksum == checksum("own.npz") == checksum(str(own_file))


def test_a_study_may_name_a_path(tiny_study: Callable[..., Study]) -> None:
    study = tiny_study(data="./own", quick={"data": "own.npz"}, claims=[CLAIM])
    assert (study.data, study.quickened().data, study.claims[0].data) == ("./own", "own.npz", "./own")
    assert tiny_study().changed(data="../own").data == "../own"
    assert parsing.parse(Study, parsing.to_toml(study), "again") == study


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"data": "octmnits"}, "data: unknown name 'octmnits'; did you mean 'octmnist'? (your own data is a path with"),
        ({"data": "flowers"}, "data: unknown name 'flowers'; valid: "),
        ({"quick": {"data": "mnits"}}, "quick.data: unknown name 'mnits'; did you mean 'mnist'?"),
        ({"claims": [{**CLAIM, "data": "mnits"}]}, "claims[1].data: unknown name 'mnits'; did you mean 'mnist'?"),
        (
            {"data": "./own", "protocol": "as-reported"},
            "protocol: 'as-reported' is a protocol for octmnist",
        ),
    ],
)
def test_a_mistyped_name_is_no_path(changes: dict[str, Any], line: str) -> None:
    with pytest.raises(TiebreakError) as caught:
        parsing.validate(Study, tiny.content(**changes), "bad.toml")
    assert str(caught.value).startswith(f"bad.toml: {line}")


@pytest.mark.parametrize("name", ["own.npz", "./own"])
def test_a_study_of_ones_own_images_is_planned(
    name: str, own_file: Path, own_folder: Path, tiny_study: Callable[..., Study]
) -> None:
    study = tiny_study(data=name, seeds=6)
    plan = make_plan(study, None)
    assert plan.data.name == name
    assert plan.data.checksum == data_checksum(study, None)
    assert plan.warnings == ()
    before = plan_inputs(study, None)
    assert before == plan.inputs
    Image.fromarray(np.zeros((28, 28), np.uint8)).save(own_folder / "dark" / "5.png")
    tiny.write_data(own_file.parent, key=1)
    (own_file.parent / "pneumoniamnist.npz").replace(own_file)
    assert plan_inputs(study, None) != before


def run(*arguments: str) -> tuple[int, str]:
    """What a data command prints; an error as its line."""
    done = CliRunner().invoke(app.app, ["data", *arguments])
    return done.exit_code, str(done.exception) if isinstance(done.exception, TiebreakError) else done.output


def test_the_check_of_a_path_shows_classes_and_splits(own_folder: Path) -> None:
    assert run("check", "./own") == (
        0,
        "./own: taken for data of the task classify; another: --task\n"
        "./own: 2 classes, 16 train, 2 val, 2 test; 28x28 pixels, grey\n"
        f"./own: split 70/15/15 of every class; sha256 {checksum('./own')}\n"
        "  dark: 8 train, 1 val, 1 test\n"
        "  light: 8 train, 1 val, 1 test\n",
    )


def test_the_check_of_a_path_finds_it_in_the_data_folder(own_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(os.sep)
    code, printed = run("check", "own.npz", "--data-dir", str(own_file.parent))
    assert code == 0
    assert "\nown.npz: 2 classes, 96 train, 24 val, 24 test; 28x28 pixels, grey\n" in printed


def test_a_folder_without_a_slash_is_explained(own_folder: Path) -> None:
    assert run("check", "own")[1] == "no data set is called 'own'; for your own data write a slash: ./own"
    assert run("check", "mnits")[1] == "no data set is called 'mnits'; did you mean 'mnist'?"


def test_what_cannot_be_fetched_says_so_at_once(tmp_path: Path) -> None:
    code, printed = run("fetch", "kuzushiji-kanji10")
    assert code == 1
    assert printed.startswith("kuzushiji-kanji10 cannot be fetched: there is no public address; put kuzushiji_kanji10")
