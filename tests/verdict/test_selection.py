"""Selection on validation, simulated: choosing each arm's setting there does no harm to the verdict on average."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from support.sample_report import complete
from tiebreak.verdict.decide import settings_flag


@pytest.mark.parametrize("shared", [0.0, 0.7])
def test_choosing_settings_on_validation_does_not_lift_false_findings(shared: float) -> None:
    """Two equal arms with four settings of nearly the same quality; validation and test correlate by `shared`."""
    stream, studies, seeds = np.random.default_rng(19), 20_000, 8
    quality = np.array([0.0, 0.1, 0.2, 0.3])  # of the settings, in sd of a run
    both = stream.standard_normal((2, studies, 4, seeds))  # arm, study, setting, seed
    val = quality[:, None] + math.sqrt(shared) * both + math.sqrt(1 - shared) * stream.standard_normal(both.shape)
    test = quality[:, None] + math.sqrt(shared) * both + math.sqrt(1 - shared) * stream.standard_normal(both.shape)
    chosen = val.mean(3).argmax(2)  # [arm, study]
    scores = [test[arm][np.arange(studies), chosen[arm]] for arm in (0, 1)]
    p = scipy.stats.ttest_rel(scores[0], scores[1], axis=1).pvalue
    wrong = float((p <= 0.045).mean())
    assert wrong < 0.05 + 4 * math.sqrt(0.05 * 0.95 / studies)


def test_a_narrow_finding_between_different_settings_is_flagged() -> None:
    item = complete().verdict.primary.model_copy(update={"verdict": "a", "p_adjusted": 0.03})
    sides = [side.model_copy(update={"setting": {"lr": lr}}) for side, lr in zip(item.sides, (0.1, 0.01), strict=True)]
    differently = item.model_copy(update={"sides": tuple(sides)})
    assert "lr=0.1 and lr=0.01" in settings_flag(differently)
    for plain in ({"p_adjusted": 0.001}, {"verdict": "undecided"}, {"sides": (sides[0], sides[0])}):
        assert settings_flag(differently.model_copy(update=plain)) == ""
