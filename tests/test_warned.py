from __future__ import annotations

import warnings

import pytest
import torch

from tiebreak import warned
from tiebreak.drive.messages import Note, said_once
from tiebreak.warned import told_warnings


@pytest.fixture(autouse=True)
def _silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warned, "_said", set())


def test_what_torch_says_of_its_own_ways_is_hidden_and_the_rest_is_told_once() -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 8, norm_first=True, batch_first=True)
    told: list[str] = []
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        torch.nn.TransformerEncoder(layer, 1)
        with told_warnings(told.append):
            torch.nn.TransformerEncoder(layer, 1)
            torch.nn.LSTM(2, 4, proj_size=2)(torch.zeros(1, 1, 2))
            torch.func.vmap(torch.histc)(torch.ones(2, 3))
            for _ in range(2):
                warnings.warn("of a\n design", stacklevel=1)
    assert [str(each.message)[:11] for each in heard] == ["enable_nest"]
    assert told == ["UserWarning: of a design"]


def test_shapes_and_length_make_no_other_warning() -> None:
    told: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with told_warnings(told.append):
            for size in (3, 16):
                warnings.warn(f"target size [{size}, 1]", stacklevel=1)
            warnings.warn("", stacklevel=1)
            warnings.warn("x" * 999, stacklevel=1)
    assert told == ["UserWarning: target size [3, 1]", "UserWarning", f"UserWarning: {'x' * 300} …"]


def test_what_several_workers_say_is_said_once() -> None:
    notes = [Note(text="UserWarning: x, at a.py:1", once="UserWarning: x"), Note(text="timing"), Note(text="timing")]
    assert list(said_once([*notes, notes[0]])) == notes
    assert list(said_once(notes)) == notes[1:]
