from __future__ import annotations

import datetime
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from support import bad_studies, tiny
from tiebreak.errors import TiebreakError
from tiebreak.study import parsing
from tiebreak.study.schema import Study

KEYS = sorted(
    {
        *Study.model_fields,
        "kind",
        "a",
        "b",
        "c",
        "d",
        "arm",
        "expect",
        "primary",
        "design",
        "epochs",
        "batch",
        "lr",
        "id",
    }
    | {
        "schedule",
        "floor",
        "evaluation",
        "build",
        "shift",
        "divisor",
        "comparison",
        "setting",
        "value",
        "source",
        "text",
    }
)
SCALARS = (
    st.booleans()
    | st.integers()
    | st.integers(min_value=2**60)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        [*KEYS, "pool", "strided", "pair", "setting", "interaction", "classify", "cnn-pool", "sgd", "x\ny"]
    )
    | st.just(datetime.date(2020, 1, 1))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(), inner, max_size=4),
    max_leaves=8,
)


def message(content: dict[str, Any]) -> str | None:
    """What the reader says to a study's content; None when it takes it."""
    try:
        parsing.validate(Study, content, "some.toml")
    except TiebreakError as error:
        return str(error)
    return None


@bad_studies.cases(bad_studies.UNKNOWN_KEYS, bad_studies.WRONG_TYPES)
def test_a_bad_key_is_one_line_with_file_key_and_remedy(bad: bad_studies.Bad, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(tomli_w.dumps(bad.content), "utf-8")
    with pytest.raises(TiebreakError) as caught:
        Study.load(str(path))
    bad.check(str(caught.value), str(path))
    assert len(str(caught.value)) < len(str(path)) + 250


def test_several_bad_keys_are_listed_in_one_line_and_the_rest_counted() -> None:
    three = str(message(tiny.content(seeds="x", margin="y", question=1)))
    assert three.count("; ") == 2
    assert all(f"{key}: should be" in three for key in ("seeds", "margin", "question"))
    assert three.isprintable()
    five = str(message(tiny.content(seeds="x", margin="y", question=1, name=2, metric=3)))
    assert five.startswith("some.toml: name: ")
    assert five.endswith("(and 2 more)")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("= 1", "line 1, column 1"),
        ("seeds = \nname = 1", "line 1, column 9"),
        ("seeds = 1\nseeds = 2", "not valid TOML"),
        ("a = " + "[" * 20_000, "nested"),
        ("seeds = " + "1" * 5_000, "not valid TOML"),
        ("seeds = 0x" + "f" * 8_000, ""),
        ("", ""),
    ],
    ids=["statement", "value", "twice", "nested", "digits", "hexadecimal digits", "empty"],
)
def test_what_is_not_a_study_in_toml_is_one_line(text: str, line: str) -> None:
    with pytest.raises(TiebreakError) as caught:
        parsing.validate(Study, parsing.load_toml(text, "some.toml"), "some.toml")
    assert str(caught.value).startswith("some.toml: ")
    assert line in str(caught.value)
    assert str(caught.value).isprintable()


def test_bytes_that_are_not_utf8_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes(b'question = "caf\xe9"')
    with pytest.raises(TiebreakError, match=r"latin\.toml: .*UTF-8.*byte 15"):
        Study.load(str(path))


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbf" + tomli_w.dumps(tiny.content()).encode())
    assert Study.load(str(path)).name == "tiny"


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match=r"gone\.toml: No such file or directory"):
        Study.load(str(tmp_path / "gone.toml"))


def test_a_folder_instead_of_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(TiebreakError, match=r"folder\.toml: Is a directory"):
        Study.load(str(tmp_path / "folder.toml"))


@pytest.mark.parametrize("name", ["poling", "Pooling"])
def test_an_unknown_study_is_answered_with_the_nearest_name(name: str) -> None:
    with pytest.raises(TiebreakError, match=rf"no study '{name}'.*'pooling'"):
        parsing.find(name)


def test_a_name_too_long_for_a_file_is_no_study() -> None:
    with pytest.raises(TiebreakError, match=r"no study 'aaa"):
        parsing.find("a" * 5000)


def test_a_folder_without_the_ending_is_no_study(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match=r"no study .*\.toml"):
        parsing.find(str(tmp_path))


def test_a_built_in_study_is_found_by_name_and_called_by_it() -> None:
    text, where = parsing.find("pooling")
    assert where == "study pooling"
    assert tomllib.loads(text)["name"] == "pooling"
    assert "pooling" in parsing.builtin_names()


def test_a_file_need_not_end_in_toml(tmp_path: Path) -> None:
    path = tmp_path / "study.txt"
    path.write_text(tomli_w.dumps(tiny.content()))
    assert parsing.find(str(path)) == (path.read_text(), str(path))


def test_the_small_study_is_good() -> None:
    assert message(tiny.content()) is None


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS) | st.text(), VALUES, max_size=6))
def test_any_content_is_a_study_or_one_line(content: dict[str, Any]) -> None:
    answer = message(content)
    assert answer is None or (answer.startswith("some.toml: ") and answer.isprintable())


@settings(deadline=None)
@given(st.sampled_from([*Study.model_fields]), VALUES)
def test_a_good_study_with_one_key_replaced_is_a_study_or_one_line(key: str, value: object) -> None:
    answer = message({**tiny.content(), key: value})
    assert answer is None or (answer.startswith("some.toml: ") and answer.isprintable())


@settings(deadline=None)
@given(st.sampled_from(["arms", "comparisons", "claims", "reported"]), st.sampled_from(KEYS), VALUES)
def test_an_entry_with_one_key_replaced_is_a_study_or_one_line(table: str, key: str, value: object) -> None:
    good: dict[str, dict[str, Any]] = {
        "arms": bad_studies.POOL,
        "comparisons": bad_studies.PAIR,
        "claims": bad_studies.CLAIM,
        "reported": bad_studies.REPORTED,
    }
    rest = tiny.content().get(table, [])[1:]
    answer = message(tiny.content(**{table: [{**good[table], key: value}, *rest]}))
    assert answer is None or (answer.startswith("some.toml: ") and answer.isprintable())
