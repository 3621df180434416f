from __future__ import annotations

import numpy as np

from support import hand_made
from tiebreak.results.record import Records
from tiebreak.verdict.decide import make_verdict
from tiebreak.verdict.model import Verdict


def lopsided() -> Verdict:
    """Two comparisons whose differences are skewed: one seed in ten is far off."""
    pairs = [{"a": "pool", "b": "strided", "primary": True}, {"a": "pool", "b": "pool-unpadded"}]
    arms = [{"name": name, "design": f"cnn-{name}"} for name in ("pool", "strided", "pool-unpadded")]
    study = hand_made.study(seeds=10, grid={"lr": [0.1]}, arms=arms, comparisons=pairs)
    book = hand_made.Book(hand_made.plan(study))
    noise = np.random.default_rng(1).standard_normal((10, 3)) / 100
    for seed in range(10):
        for place, arm in enumerate(arms):
            score = 0.5 + float(noise[seed, place]) + 0.3 * (seed == 4 and place == 0)
            book.done(arm["name"], {"lr": 0.1}, seed, val=0.5, test=score, losses=[1.0, 1.0])
    return make_verdict(study, book.plan, Records(epochs=book.epochs, runs=book.runs, finals=book.finals))


def test_a_flag_of_several_comparisons_is_one_warning_that_names_them() -> None:
    verdict = lopsided()
    (line,) = (each for each in verdict.warnings if "lopsided" in each)
    for item in verdict.comparisons:
        assert any("lopsided" in flag for flag in item.flags)
        assert f"{item.name} (skewness {item.skewness:.1f})" in line
    assert Verdict.model_validate_json(verdict.to_json()).comparisons == verdict.comparisons
