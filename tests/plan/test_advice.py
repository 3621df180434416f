from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import bad_studies
from tiebreak.plan.advice import NetworkFacts, PlannedData, warnings
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Plan
from tiebreak.study.schema import Study

Make = Callable[..., Study]
POOL, PAIR = bad_studies.POOL, bad_studies.PAIR
PLAIN = NetworkFacts(parameters=1, flops=1, cannot_fuse="", dropout_layers=1, uses_input=True, mixes_rows=False)


@pytest.fixture
def plan_of(tiny_study: Make, tiny_data_dir: Path) -> Callable[..., Plan]:
    def plan(**changes: Any) -> Plan:
        return make_plan(tiny_study(**changes), tiny_data_dir)

    return plan


def data(train: int = 1000, test: int = 1000, official: bool | None = True, synthetic: bool = False) -> PlannedData:
    return PlannedData(sizes={"train": train, "val": 10, "test": test}, official=official, synthetic=synthetic)


def test_too_few_seeds_are_a_warning(plan_of: Callable[..., Plan]) -> None:
    warning = plan_of().warnings[0]
    assert all(part in warning for part in ("2 seeds", "1 comparison", "at least 6", "--seeds"))
    assert "1 seed " in plan_of(seeds=1).warnings[0]
    assert not any("seeds" in line for line in plan_of(seeds=6).warnings)


def test_a_best_setting_needs_more_seeds(tiny_study: Make, tiny_data_dir: Path) -> None:
    study = tiny_study(fixed=None, grid={"lr": [0.1, 0.2, 0.3]}, comparisons=[PAIR, bad_studies.SETTING], seeds=6)
    warning = make_plan(study, tiny_data_dir).warnings[0]
    assert all(part in warning for part in ("6 seeds", "3 comparisons", "at least 7"))


def test_a_data_file_that_is_not_the_published_one_is_a_warning(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(seeds=6)
    assert plan.data.official is False
    warning = next(line for line in plan.warnings if "published" in line)
    assert "pneumoniamnist" in warning
    assert "checksum" in warning


def test_synthetic_speech_is_a_warning() -> None:
    (warning,) = warnings(Study.load("speech-decoder").quickened(), data(synthetic=True))
    assert "spoken-numbers" in warning
    assert "synthetic" in warning


def one(study: Study, given: PlannedData | None = None, facts: NetworkFacts | None = None) -> str:
    """The only warning of a study."""
    networks = {"pool": facts} if facts is not None else {}
    (found,) = warnings(study, given or data(), networks=networks)
    assert "\n" not in found
    return found


def test_a_hyper_parameter_that_the_update_rule_does_not_have_is_named(tiny_study: Make) -> None:
    adam = {"optimiser": {"kind": "adam"}, "seeds": 6}
    assert "fixed.momentum" in one(tiny_study(**adam, fixed={"lr": 0.1, "momentum": 0.9}))
    found = one(tiny_study(**adam, fixed={"lr": 0.1}, grid={"momentum": [0.0, 0.9]}))
    assert all(part in found for part in ("grid.momentum", "adam", "2 times", "remove"))
    own = {**POOL, "fixed": {"beta1": 0.5}}
    assert "arms.pool.fixed.beta1" in one(tiny_study(seeds=6, arms=[own, bad_studies.STRIDED]))
    mixed = [{**POOL, "optimiser": {"kind": "adam"}}, bad_studies.STRIDED]
    assert warnings(tiny_study(seeds=6, arms=mixed, fixed={"lr": 0.1, "momentum": 0.9}), data()) == []


def test_a_margin_that_test_examples_cannot_show_is_named(tiny_study: Make) -> None:
    assert "less than one of the 100" in one(tiny_study(seeds=6, margin=0.001), data(test=100))
    assert "1.5 of the 100" in one(tiny_study(seeds=6, margin=0.015), data(test=100))
    assert warnings(tiny_study(seeds=6, margin=0.02), data(test=100)) == []
    assert warnings(tiny_study(seeds=6, metric="loss", margin=1e-6), data(test=100)) == []


@pytest.mark.parametrize("examples", [7, 18, 30, 101, 500, 9999])
def test_the_margin_that_is_advised_is_enough(tiny_study: Make, examples: int) -> None:
    found = one(tiny_study(seeds=6, margin=1e-6), data(test=examples))
    advised = float(found.split("margin = ")[1].split()[0])
    assert not any(
        "test examples" in line for line in warnings(tiny_study(seeds=6, margin=advised), data(test=examples))
    )


def test_a_margin_as_wide_as_the_metric_is_named(tiny_study: Make) -> None:
    assert "0 to 1" in one(tiny_study(seeds=6, margin=1.0))
    assert warnings(tiny_study(seeds=6, metric="loss", margin=1.0), data()) == []


def test_a_batch_larger_than_the_data_is_named_and_not_padded(tiny_study: Make, plan_of: Callable[..., Plan]) -> None:
    huge = {"budget": {"epochs": 1, "batch": 1_000_000}, "seeds": 6}
    found = one(tiny_study(**huge), data(train=50))
    assert all(part in found for part in ("1,000,000", "50 training examples", "budget.batch"))
    own = [{**POOL, "batch": 64}, bad_studies.STRIDED]
    assert "arms.pool.batch = 64" in one(tiny_study(seeds=6, arms=own), data(train=50))
    plan = plan_of(**huge)
    assert {run.batch for run in plan.runs.values()} == {plan.data.sizes["train"]}


def test_a_batch_of_whole_graphs_is_named_and_the_data_is_counted_in_nodes(tmp_path: Path) -> None:
    study = Study.load("graph-normalisation").quickened()
    batches = study.model_copy(update={"budget": study.budget.model_copy(update={"batch": 8})})
    found = one(batches, data(train=10))
    assert all(part in found for part in ("budget.batch = 8", "2 steps instead of 10", "set it to 1"))
    held = make_plan(study, tmp_path).data
    assert (held.unit, held.held["train"], held.sizes["train"]) == ("nodes", 80, 10)


def test_features_whose_sum_may_be_zero_are_named() -> None:
    study = Study.load("graph-normalisation").quickened()
    given = PlannedData(sizes={"train": 10, "test": 1000}, official=None, synthetic=False, signed=True)
    assert "normalise_features = false" in one(study, given)
    assert warnings(study.model_copy(update={"options": {"normalise_features": False}}), given) == []


def test_arms_that_are_the_same_are_named(plan_of: Callable[..., Plan]) -> None:
    twin = {**POOL, "name": "twin"}
    plan = plan_of(arms=[POOL, twin], comparisons=[{"a": "pool", "b": "twin"}], seeds=6)
    assert any("pool and twin are the same runs" in line for line in plan.warnings)


def test_a_dropout_rate_without_a_dropout_layer_is_named(tiny_study: Make) -> None:
    none = NetworkFacts(**{**vars(PLAIN), "dropout_layers": 0})
    found = one(tiny_study(seeds=6, grid={"dropout": [0.1, 0.5]}), facts=none)
    assert all(part in found for part in ("grid.dropout", "cnn-pool", "no dropout layer", "2 values"))
    assert "fixed.dropout" in one(tiny_study(seeds=6, fixed={"lr": 0.1, "dropout": 0.5}), facts=none)
    assert warnings(tiny_study(seeds=6, grid={"dropout": [0.1, 0.5]}), data(), networks={"pool": PLAIN}) == []


def test_statistics_over_a_padded_batch_are_named(tiny_study: Make) -> None:
    mixing = NetworkFacts(**{**vars(PLAIN), "mixes_rows": True})
    study = tiny_study(seeds=6, budget={"epochs": 1, "batch": 8})
    found = one(study, data(train=100), mixing)
    assert all(part in found for part in ("cnn-pool", "4 of 8", "nn.BatchNorm"))
    assert warnings(study, data(train=96), networks={"pool": mixing}) == []
