"""What a results folder stores of how sound became features."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from tiebreak.data.speech.front_end import FrontEnd

NUMBERS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3).map(tuple)
ADAPTER = TypeAdapter(FrontEnd)


@given(mean=NUMBERS, deviation=NUMBERS)
def test_json_gives_the_very_same_numbers_back(mean: tuple[float, ...], deviation: tuple[float, ...]) -> None:
    made = FrontEnd(rate=16_000, filter_rate=22_050, mels=3, mean=mean, deviation=deviation)
    read = ADAPTER.validate_json(ADAPTER.dump_json(made))
    assert list(map(repr, read.mean)) == list(map(repr, mean))
    assert read == made


@pytest.mark.parametrize("change", [{"mean": (1.0,)}, {"deviation": ()}, {"mels": 4}, {"rates": 3}])
def test_what_does_not_fit_together_is_refused(change: dict[str, object]) -> None:
    made = FrontEnd(rate=16_000, filter_rate=16_000, mels=2, mean=(0.0, 1.0), deviation=(1.0, 1.0))
    with pytest.raises((ValidationError, TypeError)):
        ADAPTER.validate_python(asdict(made) | change)


def test_features_may_be_as_they_are() -> None:
    assert FrontEnd(rate=16_000, filter_rate=16_000, mels=80).mean == ()
