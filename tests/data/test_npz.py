from __future__ import annotations

import io
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from tiebreak.data.npz import ArraySpec, array_names, read_npz
from tiebreak.errors import TiebreakError

ANY = ArraySpec(ndim=(0, 1, 2, 3, 4), kinds="biufU")
BYTES = ArraySpec(ndim=(1, 3), kinds="u")
SAVED = {"train_images": np.arange(24, dtype=np.uint8).reshape(2, 3, 4), "train_labels": np.array([[0], [1]])}


def npy_bytes(array: NDArray[Any], *, pickle: bool = False) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array, allow_pickle=pickle)
    return out.getvalue()


def claiming(shape: tuple[int, ...], present: int) -> bytes:
    """An npy file whose header claims `shape` bytes and which has `present`."""
    out = io.BytesIO()
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, header)
    return out.getvalue() + bytes(present)


def archive(path: Path, entries: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as out:
        for name, content in entries.items():
            out.writestr(name, content)
    return path


def refusal(path: Path, expected: dict[str, ArraySpec], **options: int) -> str:
    with pytest.raises(TiebreakError) as caught:
        read_npz(path, expected, **options)
    line = str(caught.value)
    assert line.startswith(f"{path}: ")
    assert "\n" not in line
    return line.removeprefix(f"{path}: ")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_reads_what_numpy_wrote(tmp_path: Path, save: Any) -> None:
    save(tmp_path / "x.npz", **SAVED)
    assert array_names(tmp_path / "x.npz") == ("train_images", "train_labels")
    arrays = read_npz(tmp_path / "x.npz", {"train_images": ANY, "train_labels": ANY})
    for key, array in SAVED.items():
        np.testing.assert_array_equal(arrays[key], array, strict=True)
        assert arrays[key].flags.writeable
        assert arrays[key].flags.c_contiguous


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    array=hnp.arrays(
        dtype=st.sampled_from(["u1", "<i4", ">i8", "<f2", ">f8", "?", "<U3", ">U2"]),
        shape=hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
    ),
    fortran=st.booleans(),
)
def test_round_trip(tmp_path: Path, array: NDArray[Any], fortran: bool) -> None:
    np.savez(tmp_path / "x.npz", a=np.asarray(array, order="F" if fortran else "C"))
    read = read_npz(tmp_path / "x.npz", {"a": ANY})["a"]
    np.testing.assert_array_equal(read, array)
    assert read.shape == array.shape
    assert read.dtype == array.dtype.newbyteorder("=")
    assert read.dtype.isnative


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10**6), byte=st.integers(0, 255), cut=st.booleans(), compress=st.booleans())
def test_damage_anywhere_is_refused_or_harmless(
    tmp_path: Path, place: int, byte: int, cut: bool, compress: bool
) -> None:
    path = tmp_path / "x.npz"
    (np.savez_compressed if compress else np.savez)(path, allow_pickle=False, **SAVED)
    content = bytearray(path.read_bytes())
    place %= len(content)
    content[place:] = b"" if cut else bytes([byte]) + content[place + 1 :]
    path.write_bytes(content)
    with warnings.catch_warnings(action="ignore"):  # numpy on headers of Python 2, zipfile on duplicate names
        try:
            arrays = read_npz(path, {"train_images": BYTES, "train_labels": ANY})
        except TiebreakError:
            return
    for key, array in SAVED.items():
        np.testing.assert_array_equal(arrays[key], array)


def test_not_there_or_a_folder(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "x.npz", {"a": ANY})
    assert "directory" in refusal(tmp_path, {"a": ANY})


def test_not_a_zip(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_text("<html>sign in first</html>")
    assert refusal(tmp_path / "x.npz", {"a": ANY}).startswith("not an npz file")
    (tmp_path / "empty.npz").touch()
    assert refusal(tmp_path / "empty.npz", {"a": ANY}).startswith("not an npz file")


def test_truncated(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, allow_pickle=False, **SAVED)
    path.write_bytes(path.read_bytes()[:300])
    assert refusal(path, {"train_images": ANY}).startswith("truncated")


def test_missing_key_names_the_nearest(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", allow_pickle=False, **SAVED)
    line = refusal(tmp_path / "x.npz", {"train_image": ANY})
    assert line.startswith("no array 'train_image'; expected train_image; found ")
    assert "train_images" in line


def test_pickled_objects(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.npz", {"a.npy": npy_bytes(np.array([{"b": 1}], dtype=object), pickle=True)})
    assert refusal(path, {"a": ANY}).startswith("a: holds pickled objects")


def test_structured_arrays(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.npz", {"a.npy": npy_bytes(np.zeros(3, dtype=[("x", "u1"), ("y", "f4")]))})
    assert refusal(path, {"a": BYTES}).endswith("expected unsigned integers")


def test_wrong_dtype_and_dimensions(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, a=np.zeros((2, 2), np.float32), b=np.zeros((2, 2), np.uint8))
    assert refusal(path, {"a": ArraySpec(ndim=(2,), kinds="iu")}).startswith("a: is float32")
    assert refusal(path, {"b": BYTES}).startswith("b: has shape (2, 2)")


def test_a_small_file_that_claims_two_gigabytes(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.npz", {"a.npy": claiming((2_000_000_000,), 200_000)})
    assert refusal(path, {"a": BYTES}).startswith("a: claims shape (2000000000,), 2,000,000,000 bytes, and has 200,000")


@pytest.mark.parametrize("shape", [(-1,), (-2, -5, 10), (99,), (101,)])
def test_header_and_bytes_disagree(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = archive(tmp_path / "x.npz", {"a.npy": claiming(shape, 100)})
    assert refusal(path, {"a": BYTES}).startswith("a: claims shape")


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_directory_that_claims_two_gigabytes(tmp_path: Path, compression: int) -> None:
    size = 2_000_000_000
    content = claiming((size,), 1000)
    path = archive(tmp_path / "x.npz", {"a.npy": content}, compression)
    header = len(content) - 1000
    raw = bytearray(path.read_bytes())
    entry = raw.index(b"PK\x01\x02")
    raw[entry + 24 : entry + 28] = (size + header).to_bytes(4, "little")  # the directory's uncompressed size
    path.write_bytes(raw)
    assert refusal(path, {"a": BYTES}).startswith(f"a: claims {size + header:,} bytes, more than the file can hold")


def test_more_than_the_limit(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.zeros(1000, np.uint8), b=np.zeros(1000, np.uint8))
    assert read_npz(tmp_path / "x.npz", {"a": BYTES}, limit=1500)["a"].sum() == 0
    assert "at most 1,500 are read" in refusal(tmp_path / "x.npz", {"a": BYTES, "b": BYTES}, limit=1500)


def test_other_packing_and_duplicates(tmp_path: Path) -> None:
    array = npy_bytes(np.zeros(3, np.uint8))
    path = archive(tmp_path / "lzma.npz", {"a.npy": array}, zipfile.ZIP_LZMA)
    assert "npz files do not use" in refusal(path, {"a": BYTES})
    path = archive(tmp_path / "twice.npz", {"a.npy": array, "a": array})
    assert refusal(path, {"a": BYTES}).startswith("two arrays are called 'a'")


def test_not_an_array(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.npz", {"a.npy": b"hello", "b.npy": b"\x93NUMPY\x09\x00" + bytes(50)})
    assert refusal(path, {"a": BYTES}).startswith("a: damaged")
    assert refusal(path, {"b": BYTES}).startswith("b: damaged")
