from __future__ import annotations

from pathlib import Path

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.exchange.json_lines import read_json_lines


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ('{"arm": "a"}\nnot json', "line 2: not valid JSON"),
        ('{"arm": "a"}\n[1]', "line 2: not a JSON object"),
        ("[1, 2]", "object 1: not a JSON object"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_json_is_one_line(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    with pytest.raises(TiebreakError, match=words):
        read_json_lines(path)


def test_keys_of_all_lines_are_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n\n{"b": {"c": "x"}}\n')
    found = read_json_lines(path)
    assert list(found.columns) == ["a", "b.c"]
    assert list(found.rows) == [(1, [1, None]), (3, [None, "x"])]
