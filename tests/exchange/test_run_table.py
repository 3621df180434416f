from __future__ import annotations

from pathlib import Path

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.exchange import run_table as table


def test_runs_become_rows_and_what_they_lack_is_none() -> None:
    found = table.from_runs(Path("x"), [("one", {"lr": 0.1, "acc": 1}), ("two", {"acc": 2})], ["acc"])
    assert list(found.columns) == ["run", "lr", "acc"]
    assert [cells for _, cells in found.rows] == [["one", 0.1, 1], ["two", None, 2]]
    assert list(found.metrics) == ["acc"]
    assert found.at("run 'one'") == "x, run 'one'"
    assert found.at(3) == "x, line 3"


def test_nested_keys_are_joined_and_lists_left_out() -> None:
    assert table.flat({"a": {"b": {"c": 1}}, "d": "x", "e": [1], "f": None}) == {"a.b.c": 1, "d": "x", "f": None}


def test_links_hidden_folders_and_too_many_files_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b", "a", ".git/c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "file-link").symlink_to(tmp_path / "a")
    assert [path.name for path in table.walk(tmp_path)] == ["a", "b"]
    monkeypatch.setattr(table, "MOST_FILES", 1)
    with pytest.raises(TiebreakError, match="more than 1 files"):
        list(table.walk(tmp_path))
