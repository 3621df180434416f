"""Two columns of a file, plain or gzipped."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tiebreak.data.pairs.pair_files import LIMIT_LINE, read_pairs
from tiebreak.errors import TiebreakError

WORDS = st.text(st.characters(exclude_characters="\t\r\n\0\ufeff", codec="utf-8"), min_size=1, max_size=9)


def refusal(call: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(TiebreakError) as caught:
        call(*arguments)
    line = str(caught.value)
    assert line.isprintable()
    return line


def test_a_line_may_be_as_long_as_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text("a\t" + "b" * (LIMIT_LINE - 2), "utf-8")
    assert len(read_pairs(path).pairs[0][1]) == LIMIT_LINE - 2


@pytest.mark.parametrize("content", [b"not gzip", gzip.compress(b"a\tb\n" * 99, mtime=0)[:-9]], ids=["text", "cut"])
def test_damaged_gzip_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pairs.txt.gz"
    path.write_bytes(content)
    line = refusal(read_pairs, path)
    assert line.startswith(f"{path}: damaged")
    assert "get the file again" in line


def test_a_small_file_that_unpacks_to_a_large_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.txt.gz"
    path.write_bytes(gzip.compress(b"a\tb\n" * 100_000, mtime=0))
    assert path.stat().st_size < 2000
    assert "100,000 bytes" in refusal(read_pairs, path, 100_000)
    assert len(read_pairs(path).pairs) == 100_000


@given(rows=st.lists(st.tuples(WORDS, WORDS).filter(lambda row: "".join(row).strip()), min_size=1, max_size=9))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pairs_come_back_plain_and_gzipped(rows: list[tuple[str, str]], tmp_path: Path) -> None:
    text = "\r\n \n".join("\t".join([*row, "more", "columns"]) for row in rows).encode()
    (tmp_path / "pairs.tsv").write_bytes(text)
    (tmp_path / "pairs.gz").write_bytes(gzip.compress(text))
    for name in ("pairs.tsv", "pairs.gz"):
        found = read_pairs(tmp_path / name)
        assert found.pairs == [
            (row[0].removeprefix("\ufeff") if not at else row[0], row[1]) for at, row in enumerate(rows)
        ]
        assert found.blank == len(rows) - 1


def test_a_line_without_a_tab_is_named(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("a\tb\nno tab\n")
    with pytest.raises(TiebreakError, match=r"pairs\.tsv: line 2: no tab.*source TAB target"):
        read_pairs(tmp_path / "pairs.tsv")
