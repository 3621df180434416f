from __future__ import annotations

from pathlib import Path

from tiebreak.data.left_out import left_out


def test_what_was_not_read_is_counted_and_named(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for name in ("a.png", ".DS_Store", "notes.txt", "deep/b.png", "deep/er/c\x1b.png"):
        (tmp_path / name).touch()
    (line,) = left_out(tmp_path, {tmp_path / "a.png", tmp_path / "deep" / "b.png"})
    assert line.startswith("left out: 3 files: ")
    assert all(name in line for name in (".DS_Store", "notes.txt", "deep/er/c\\x1b.png"))
    assert "deep/b.png" not in line


def test_a_long_list_is_cut_and_an_empty_one_is_no_line(tmp_path: Path) -> None:
    names = [tmp_path / f"{number}.txt" for number in range(9)]
    for path in names:
        path.touch()
    (line,) = left_out(tmp_path, set())
    assert "9 files" in line
    assert "others" in line
    assert left_out(tmp_path, set(names)) == ()
