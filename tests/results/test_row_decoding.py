"""Rows that are no records: a ValueError says what is wrong with each, and no memory is spent on a claim."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.errors import TiebreakError
from tiebreak.results.packing import PackedArrays, pack
from tiebreak.results.record import ExhibitRecord
from tiebreak.results.row_decoding import Decoder

GOOD_EPOCH = {"metrics": {"train_loss": 0.5}, "seconds": {"train": 1.0}}
GOOD_RUN = {"status": "done", "epoch": 3, "reason": "", "provenance": {"torch": "2"}}


def zipped(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def npy(array: Any, **how: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), **how)
    return buffer.getvalue()


def test_good_rows_become_records() -> None:
    decoder = Decoder(1000)
    epoch = decoder.epoch("t", 1, json.dumps(GOOD_EPOCH | {"metrics": {"train_loss": float("nan")}}))
    assert np.isnan(epoch.metrics["train_loss"])
    assert decoder.run("i", "t", json.dumps(GOOD_RUN)).provenance == {"torch": "2"}
    final = decoder.final("i", "default", '{"metrics": {"accuracy": 1}, "seconds": 2}', pack({"accuracy": np.ones(3)}))
    assert final.outcomes["accuracy"].tolist() == [1, 1, 1]
    final.outcomes["accuracy"][0] = 0  # arrays can be written to


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "5",
        "null",
        "",
        "{",
        "[" * 100_000,
        '{"metrics": {}}',
        '{"metrics": {}, "seconds": {}, "more": 1}',
        '{"metrics": {"a": "1"}, "seconds": {}}',
        '{"metrics": [], "seconds": {}}',
        '{"metrics": {}, "seconds": {"train": NaN}}',
        '{"metrics": {}, "seconds": {"train": Infinity}}',
        '{"metrics": {"a": {"b": 1}}, "seconds": {}}',
        None,
        b"{}",
        7,
        1.5,
    ],
    ids=repr,
)
def test_content_of_another_form_is_refused(content: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        Decoder(1000).epoch("t", 1, content)


@pytest.mark.parametrize("epoch", ["1", -1, 1.0, None, b"1"])
def test_an_epoch_is_a_whole_number(epoch: Any) -> None:
    with pytest.raises(ValueError, match="epoch"):
        Decoder(1000).epoch("t", epoch, json.dumps(GOOD_EPOCH))


@pytest.mark.parametrize("change", [{"status": "great"}, {"epoch": -1}, {"epoch": 1.5}, {"provenance": {"a": 1}}])
def test_a_run_has_a_known_status_an_epoch_and_text(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        Decoder(1000).run("i", "t", json.dumps(GOOD_RUN | change))


@pytest.mark.parametrize("name", [None, b"a", 3])
def test_a_checkpoint_has_the_name_of_a_file(name: Any) -> None:
    with pytest.raises(ValueError, match="place of text"):
        Decoder(0).checkpoint("i", "t", 1, name, "0" * 64)


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"PK",
        "text",
        None,
        np.zeros(3).dumps(),
        zipped("a.npy", npy(np.array([{}], object), allow_pickle=True)),
        zipped("a.npy", npy(np.zeros(3))[:-1]),
        zipped("a.npy", npy(np.zeros(3)) + b"x"),
        zipped("a.npy", npy(np.zeros(3)).replace(b"(3,)", b"(-3,)")),
        zipped("a.npy", npy(np.zeros(3)).replace(b"(3,), ", b"(10**9,), ")),
        zipped("a.npy", npy(np.zeros(2, "V8"))),
        zipped("a.npy", npy(np.zeros(2, "M8[s]"))),
        zipped("a.npy", npy(np.zeros(200_000))),
    ],
    ids=range(13),  # the bytes hold the time
)
def test_arrays_that_are_none_are_refused(blob: Any) -> None:
    """Bytes are looked into when an array is looked up; what is no bytes is refused at once."""
    with pytest.raises((ValueError, TiebreakError), match=r"arrays|^store: table exhibits, i n: not a record"):
        dict(Decoder(1_000_000, "store").exhibit("i", "n", blob).arrays)


def test_all_arrays_together_are_limited() -> None:
    decoder, blob = Decoder(1_000_000), pack({"zeros": np.zeros(50_000)})  # 400 kB that pack to half of one
    assert len(blob) < 1000
    shown = [decoder.exhibit("i", str(number), blob).arrays for number in range(3)]
    assert len(shown[0]["zeros"]) == len(shown[1]["zeros"]) == 50_000
    with pytest.raises(TiebreakError, match="at most"):
        dict(shown[2])
    assert len(shown[0]["zeros"]) == 50_000


@given(st.text() | st.binary() | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_any_content_is_a_record_or_a_value_error(content: Any) -> None:
    for decode in (Decoder(1000).epoch, Decoder(1000).run, Decoder(1000).choice, Decoder(1000).exhibit):
        try:
            found = decode("a", "b", content)
        except ValueError:
            continue
        assert isinstance(found.arrays, PackedArrays) if isinstance(found, ExhibitRecord) else found
