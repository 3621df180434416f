from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support.small_study import loop_machine, workers_here
from tiebreak import api
from tiebreak.drive.machine import Machine
from tiebreak.drive.messages import Message, Note
from tiebreak.results.example_selection import contrasting_examples, exhibit_runs
from tiebreak.results.tally import Tally
from tiebreak.study.schema import Study

ARMS = [
    {"name": "pool", "design": "cnn-pool"},
    {"name": "strided", "design": "cnn-strided"},
    {"name": "moved", "design": "cnn-pool", "evaluation": {"disturbed": True}},
]


@pytest.fixture(scope="module")
def shown(
    tiny_study: Callable[..., Study], tiny_data_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[api.Result, list[Message]]:
    heard: list[Message] = []
    out = tmp_path_factory.mktemp("telling") / "out"
    with workers_here():
        result = api.run(
            tiny_study(arms=ARMS),
            out,
            machine=loop_machine(tiny_data_dir),
            listen=heard.append,
        )
    return result, heard


def tally(result: api.Result) -> Tally:
    return Tally(result.study, result.plan, result.records)


def test_every_run_at_the_chosen_setting_is_shown_once(shown: tuple[api.Result, list[Message]]) -> None:
    result, _ = shown
    wanted = exhibit_runs(tally(result))
    assert set(wanted) == set(result.plan.arm("pool").runs.values()) | set(result.plan.arm("strided").runs.values())
    assert set(result.records.exhibits) == set(wanted), "arms that share runs share exhibits"
    first, second = result.plan.arm("pool").runs.values()
    assert set(result.records.exhibits[first]) == {"robustness", "examples", "activations", "shown-examples"}
    assert set(result.records.exhibits[second]) == {"robustness"}, "one seed of an arm shows examples"


def test_the_examples_tell_the_arms_apart(shown: tuple[api.Result, list[Message]]) -> None:
    result, _ = shown
    examples = contrasting_examples(tally(result))
    assert len(set(examples)) == len(examples)
    rates = []
    for arm in ("pool", "strided"):
        outcomes = tally(result).outcomes(arm, {}, "accuracy")
        rates.append(np.mean(list(outcomes.values()), axis=0))
    best = (rates[0] - rates[1]).max()
    assert (rates[0] - rates[1])[examples[0]] == best


def test_exhibits_are_made_once(shown: tuple[api.Result, list[Message]], tiny_data_dir: Path) -> None:
    result, heard = shown
    assert any(isinstance(message, Note) and message.text == "making exhibits of 4 runs" for message in heard)
    again: list[Message] = []
    api.run(result.study, result.folder, machine=Machine(data_dir=tiny_data_dir), listen=again.append)
    assert not any(isinstance(message, Note) for message in again)


def test_the_robustness_curve_agrees_with_the_test_score(shown: tuple[api.Result, list[Message]]) -> None:
    result, _ = shown
    for identity, exhibits in result.records.exhibits.items():
        curves = exhibits["robustness"].arrays
        score = result.records.finals[identity]["default"].metrics["accuracy"]
        for kind, still in (("shift", 0), ("rotate", 0), ("scale", 1)):
            at = curves[f"{kind}_accuracy"][curves[f"{kind}_value"] == still]
            assert at == pytest.approx(score, abs=1e-6)


def test_nothing_is_shown_before_anything_is_trained(tiny_study: Callable[..., Study], tiny_data_dir: Path) -> None:
    from tiebreak.plan.planner import make_plan
    from tiebreak.results.record import Records

    study = tiny_study()
    empty = Tally(study, make_plan(study, tiny_data_dir), Records(epochs={}, runs={}, finals={}))
    assert exhibit_runs(empty) == {}
    assert contrasting_examples(empty) == ()


def test_other_runs_of_classified_images_have_exhibits_only_where_moved_images_are_shown(
    shown: tuple[api.Result, list[Message]],
) -> None:
    result, _ = shown
    arms = [arm for arm in result.study.arms if not arm.evaluation]
    still = result.study.model_copy(update={"arms": tuple(arms)})
    wanted = exhibit_runs(Tally(still, result.plan, result.records))
    assert len(wanted) == len(arms)  # the first run of each
    assert all(wanted.values())
    assert len(exhibit_runs(tally(result))) > len(wanted)
