"""Small pickles that ask for too much are refused before anything is built."""

from __future__ import annotations

import pickle
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from tiebreak.data.graphs import pickle_scan
from tiebreak.data.graphs.pickle_scan import scan
from tiebreak.data.graphs.unpickle import NAMES, read_array, read_lists, read_matrix
from tiebreak.errors import TiebreakError

DOUBLED_KEY = b"\x80\x02}" + b"K\x01\x85" + b"".join(b"q%ch%c\x86" % (n, n) for n in range(60)) + b"K\x01s."
DEEP_KEY = b"\x80\x02})" + b"\x85" * 2_000_000 + b"K\x01s."
LISTS = b"\x80\x02](" + b"]" * 3_000_000 + b"e."
READERS = (read_array, read_matrix, read_lists)


def array_with(shape: bytes, raw: bytes) -> bytes:
    """A pickled array of int8 with other operations for its shape and its bytes."""
    content = pickle.dumps(np.arange(3, dtype=np.int8), 2)
    assert b"K\x03\x85" in content
    start = pickle.dumps(np.arange(3, dtype=np.int8), 3)
    assert b"C\x03\x00\x01\x02" in start
    return start.replace(b"K\x03\x85", shape).replace(b"C\x03\x00\x01\x02", raw)


def text(content: str) -> bytes:
    raw = content.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (DOUBLED_KEY, r"deep|key"),
        (DEEP_KEY, "deep"),
        (b"\x80\x02" + b"cnumpy\ndtype\n0" * 2000 + b"N.", r"POP|more objects"),
        (b"\x80\x02](" + b"cnumpy\ndtype\n" * 2000 + b"e.", "more objects"),
        (b"\x80\x02}K\x01\x85K\x01s.", "key"),
        (b"\x80\x02}(K\x01K\x02]K\x03u.", "key"),
        (array_with(b"K\x03\x85", text("\u0100\u0101\u0102")), "text in the place"),
        (array_with(b"\x8a\xfa" + b"\x01" * 250 + b"\x85", b"C\x03\x00\x01\x02"), "shape"),
        (array_with(b"K\x00\x8a\xfa" + b"\x01" * 250 + b"\x86", b"C\x00"), "shape"),
        (b"\x80\x02\x85.", "whole pickle"),
        (b"\x80\x02h\x05.", "whole pickle"),
        (b"\x80\x02(K\x01\x86.", "whole pickle"),
        (b"\x80\x02e.", "whole pickle"),
    ],
    ids=[
        *("doubled 60 times", "2,000,000 deep", "classes", "2,000 classes", "tuple as key"),
        *("list as key", "above latin-1", "side of 10^600", "empty with a side of 10^600", "no item"),
        *("no memo", "mark in the way", "no mark"),
    ],
)
def test_a_small_file_that_asks_for_too_much_is_refused(tmp_path: Path, content: bytes, word: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    for read in (read_array,) if "shape" in word or "text" in word else READERS:
        with pytest.raises(TiebreakError, match=word) as caught:
            read(path)
        assert len(str(caught.value)) < 500


def test_the_refusal_takes_little_memory(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(LISTS)
    code = (
        "import resource, sys; from pathlib import Path; from tiebreak.data.graphs.unpickle import read_lists\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: read_lists(Path(sys.argv[1]))\n"
        "except ValueError: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "x"], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 300_000  # kB


@pytest.mark.parametrize("protocol", [2, 3])
def test_arrays_matrices_and_graphs_pass(tmp_path: Path, protocol: int) -> None:
    lists = {node: [node + 1, node + 2] for node in range(3000)}
    values = [lists] if protocol == 2 else [lists, np.eye(3), csr_matrix(np.eye(3))]
    for value in values:
        scan("x", pickle.dumps(value, protocol), NAMES)


def test_a_list_that_holds_itself_is_no_trap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickle_scan, "LIMIT_DEPTH", 5)
    with pytest.raises(TiebreakError, match="deep"):
        scan("x", b"\x80\x02]q\x00" + b"h\x00a" * 10 + b".", NAMES)
