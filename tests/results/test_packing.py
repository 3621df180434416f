from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pydantic import TypeAdapter

from tiebreak.results.packing import Arrays, PackedArrays, fingerprint, pack, unpack

DTYPES: st.SearchStrategy[np.dtype[Any]] = st.sampled_from(
    [np.dtype(code) for code in ("u1", "i8", "f2", "f4", "f8", "U5", "?")]
)
ARRAYS = st.dictionaries(
    st.sampled_from(["accuracy", "edit distance", "class names", "größe"]),
    hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, min_side=0, max_side=3)),
    max_size=3,
)


def bits(arrays: Any) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    return {name: (str(values.dtype), values.shape, values.tobytes()) for name, values in arrays.items()}


@given(ARRAYS)
def test_arrays_come_back_bit_for_bit(arrays: dict[str, Any]) -> None:
    assert bits(unpack(pack(arrays))) == bits(arrays)


@given(ARRAYS)
def test_arrays_come_back_as_text(arrays: dict[str, Any]) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(Arrays)
    text = adapter.dump_python(arrays)
    assert isinstance(text, str)
    assert text.isascii()
    found = adapter.validate_python(text)
    assert bits(found) == bits(arrays)
    assert adapter.dump_python(found) == text  # stored and sent on as they came


def test_no_pickle_is_loaded() -> None:
    objects = pack({"objects": np.array([{"a": 1}], dtype=object)})
    with pytest.raises(ValueError, match="pickle"):
        unpack(objects)
    with pytest.raises((ValueError, pickle.UnpicklingError)):
        unpack(pickle.dumps({"a": 1}))


@given(ARRAYS)
def test_packed_arrays_are_those_that_were_packed(arrays: dict[str, Any]) -> None:
    packed = PackedArrays(pack(arrays), unpack)
    assert bits(packed) == bits(arrays)
    assert fingerprint(packed) == fingerprint(arrays), "packing is the same every time"


def test_arrays_are_unpacked_when_they_are_looked_up() -> None:
    packed = PackedArrays(b"no npz file", unpack)
    assert len(fingerprint(packed)) == 64
    with pytest.raises(ValueError):
        packed["accuracy"]
