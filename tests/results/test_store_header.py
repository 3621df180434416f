from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from support.hand_made import RUN
from tiebreak.results.connection import connect, readable_rows
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.results.store_header import repair_header


@pytest.mark.parametrize("place", [0, 5, 16, 17, 18, 19, 20, 21, 22, 23, 28, 31, 47, 55, 59, 63, 67, 71, 95])
def test_a_store_whose_header_is_damaged_is_read(tmp_path: Path, place: int) -> None:
    with closing(Store.create(tmp_path)) as store, store.transaction():
        store.add_run(RUN)
    path = tmp_path / STORE_FILE
    content = bytearray(path.read_bytes())
    content[place] ^= 0x5
    path.write_bytes(content)
    with closing(connect(repair_header(path, tmp_path / "copy"))) as copy:
        rows, problem = readable_rows(copy, "runs")
    assert (len(rows), problem) == (1, "")
    assert path.read_bytes() == content


def test_a_file_that_was_cut_in_its_header_is_copied_as_it_is(tmp_path: Path) -> None:
    (tmp_path / STORE_FILE).write_bytes(b"SQLite")
    assert repair_header(tmp_path / STORE_FILE, tmp_path / "copy").read_bytes() == b"SQLite"
