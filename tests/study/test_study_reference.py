"""docs/study-file.md and the file of `tiebreak new --full`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tiebreak.study import registry
from tiebreak.study.parsing import load_toml, template
from tiebreak.study.schema import Study
from tiebreak.study.study_keys import tables
from tiebreak.study.study_reference import full_file, page

PAGE = Path(__file__).parents[2] / "docs" / "study-file.md"


def test_the_page_is_up_to_date() -> None:
    command = "python -m tiebreak.study.study_reference > docs/study-file.md"
    assert PAGE.read_text("utf-8") == page(), f"write it again: {command}"


def test_the_page_names_every_key_option_hyper_parameter_and_design() -> None:
    text = page()
    names = {key.name for table in tables() for key in table.keys} | {*registry.HYPERS, *registry.DESIGNS}
    for task in registry.TASKS.values():
        names |= {*task.options, *task.evaluation, *task.metrics, *task.protocols}
    assert [name for name in names if f"`{name}" not in text] == []


def test_the_full_file_is_the_template_with_every_key() -> None:
    text = full_file("mine")
    assert tomllib.loads(text) == {**template(), "name": "mine"}
    for table in tables():
        assert table.header in text or not table.name
        for key in table.keys:
            assert re.search(rf"^(#: )?(\[{key.name}\]|{key.name} = )", text, re.M), key.name


def test_an_example_is_in_use_once_its_mark_is_removed() -> None:
    text = full_file("mine").replace("#: seeds = ", "seeds = ").replace("#: epochs_times = ", "epochs_times = ")
    study = Study.model_validate(load_toml(text, "mine.toml"))
    assert study.quick.seeds == 6
    assert [arm.epochs_times for arm in study.arms] == [2, 1]


def test_without_its_marks_the_whole_file_is_toml() -> None:
    tomllib.loads(re.sub(r"^#: ", "", full_file("mine"), flags=re.M))
