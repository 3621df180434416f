from __future__ import annotations

import pytest

from tiebreak.drive.compile_gain import GAIN, PER_OPERATION, estimate


def test_compiling_pays_when_enough_steps_are_left() -> None:
    few, many = estimate(0.02, 1_000, 1_900), estimate(0.02, 100_000, 1_900)
    assert few.saved < 0 < many.saved
    assert many.traced == pytest.approx(2_000)
    assert many.saved == pytest.approx(2_000 - 2_000 / GAIN - 1_900 * PER_OPERATION)


def test_a_larger_step_takes_longer_to_compile() -> None:
    assert estimate(0.01, 20_000, 500).saved > estimate(0.01, 20_000, 2_000).saved
