from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from support import tiny
from tiebreak.data.images.image_data import checksum
from tiebreak.data.images.image_data import load as load_images
from tiebreak.errors import TiebreakError
from tiebreak.plan.planner import data_checksum, make_plan, plan_inputs
from tiebreak.study import parsing
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
    assert parsing.validate(Study, parsing.load_toml(parsing.to_toml(study), "again"), "again") == study


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
    assert all("margin" in warning for warning in plan.warnings)  # a handful of test examples
    before = plan_inputs(study, None)
    assert before == plan.inputs
    Image.fromarray(np.zeros((28, 28), np.uint8)).save(own_folder / "dark" / "5.png")
    tiny.write_data(own_file.parent, key=1)
    (own_file.parent / "pneumoniamnist.npz").replace(own_file)
    assert plan_inputs(study, None) != before
