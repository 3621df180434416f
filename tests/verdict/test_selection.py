"""Selection on validation, simulated: choosing each arm's setting there does no harm to the verdict on average."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from support.sample_report import complete
from tiebreak.verdict.decide import settings_flag


def errors(qualities: list[float], shared: float, seeds: int, studies: int = 20_000) -> tuple[float, float]:
    """The share of false findings of two equal arms, and that among those that chose different settings.

    `qualities` of the settings are in sd of a run; validation and test scores of a run correlate by `shared`.
    """
    stream, quality = np.random.default_rng(19), np.array(qualities)
    both = stream.standard_normal((2, studies, len(quality), seeds))  # arm, study, setting, seed
    val = quality[:, None] + math.sqrt(shared) * both + math.sqrt(1 - shared) * stream.standard_normal(both.shape)
    test = quality[:, None] + math.sqrt(shared) * both + math.sqrt(1 - shared) * stream.standard_normal(both.shape)
    chosen = val.mean(3).argmax(2)  # [arm, study]
    scores = [test[arm][np.arange(studies), chosen[arm]] for arm in (0, 1)]
    p = scipy.stats.ttest_rel(scores[0], scores[1], axis=1).pvalue
    wrong = p <= 0.045
    return float(wrong.mean()), float(wrong[chosen[0] != chosen[1]].mean())


@pytest.mark.parametrize("shared", [0.0, 0.7])
def test_choosing_among_settings_of_nearly_the_same_quality_does_no_harm(shared: float) -> None:
    studies = 20_000
    assert errors([0.0, 0.1, 0.2, 0.3], shared, 8, studies)[0] < 0.05 + 4 * math.sqrt(0.05 * 0.95 / studies)


@pytest.mark.parametrize("seeds", [6, 10])
@pytest.mark.parametrize("shared", [0.0, 0.3, 0.7])
def test_choosing_among_different_settings_harms_as_the_flag_says(shared: float, seeds: int) -> None:
    """docs/statistics.md has these figures."""
    wrong, differently = errors([0.0, 0.5, 1.0], shared, seeds)
    assert wrong < 0.085
    assert 0.05 < differently < 0.19


def test_a_narrow_finding_between_different_settings_is_flagged() -> None:
    item = complete().verdict.primary.model_copy(update={"verdict": "a", "p_adjusted": 0.03})
    sides = [side.model_copy(update={"setting": {"lr": lr}}) for side, lr in zip(item.sides, (0.1, 0.01), strict=True)]
    differently = item.model_copy(update={"sides": tuple(sides)})
    assert "lr=0.1 and lr=0.01" in settings_flag(differently)
    for plain in ({"p_adjusted": 0.001}, {"verdict": "undecided"}, {"sides": (sides[0], sides[0])}):
        assert settings_flag(differently.model_copy(update=plain)) == ""
