"""Carried state, gradients summed over a pass and evaluation that trains: fused is loop, and resumed is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from support.families import FAMILIES, floats, options_of, task_of
from support.fused_jobs import ends, job_of, numbers, saved_in, train_job
from support.twins import apart, begin, find, make_run, planned, silent, tensors
from tiebreak.drive import worker
from tiebreak.drive.messages import EpochDone, Message, RunEnded
from tiebreak.models.design import Design
from tiebreak.results.record import Strategy
from tiebreak.train import checkpoint
from tiebreak.train.run_group import make_group

RULES: dict[str, dict[str, Any]] = {
    "summed": {"kind": "sgd-summed", "lr": 0.01, "weight_decay": 0.01},
    "sgd": {"kind": "sgd", "lr": 0.3, "momentum": 0.5},
    "adam": {"kind": "adam", "lr": 0.003},
}


pytestmark = pytest.mark.usefixtures("one_thread", "save_every_epoch")


def text(seed: int, windows: int = 7) -> dict[str, Tensor]:
    family = FAMILIES["language"]
    return floats(family.examples(family.small, windows, seed), torch.float64)


@pytest.mark.parametrize(
    ("name", "rule"), [*(("rnn-sigmoid", rule) for rule in RULES), ("lstm", "summed"), ("transformer", "adam")]
)
def test_passes_window_by_window_are_the_loops(name: str, rule: str, tmp_path: Path) -> None:
    design: Design = find(name, tmp_path)
    runs = [make_run(design, seed=seed, batch=1, dropout=rate, **RULES[rule]) for seed, rate in ((0, 0.0), (1, 0.3))]
    looped, fused = begin(design, runs), begin(design, runs)
    trainer, trainers = fused.fused(), looped.looped()
    train, val, test = text(0), text(1, 5), text(2, 3)
    for _ in range(2):
        losses = trainer.train_epoch(train, silent)
        assert losses == pytest.approx([each.train_epoch(train, silent)[0] for each in trainers], rel=1e-10)
        for found, each in zip(trainer.train_on(val), trainers, strict=True):
            np.testing.assert_allclose(found, each.train_on(val)[0], rtol=1e-10)
        for (metrics, _), each in zip(trainer.evaluate(test), trainers, strict=True):
            assert metrics == pytest.approx(each.evaluate(test)[0][0], rel=1e-6)
    for mine, wanted in zip(fused.states, looped.states, strict=True):
        assert (mine.epoch, mine.steps) == (wanted.epoch, wanted.steps) == (2, 24)
        assert apart(tensors(mine), tensors(wanted)) <= 1e-10
        assert all(not name.endswith("state") or values.any() for name, values in wanted.buffers.items())


@pytest.mark.parametrize("name", ["rnn-sigmoid", "lstm"])
def test_what_is_carried_matters_and_evaluation_leaves_it_alone(name: str, tmp_path: Path) -> None:
    design = find(name, tmp_path)
    begun = begin(design, [make_run(design, seed=seed, batch=1) for seed in range(2)])
    trainer, split = begun.fused(), text(0)
    trainer.train_epoch(split, silent)
    before = [tensors(state) for state in begun.states]
    kept = [{name: values.clone() for name, values in each.items()} for each in before]
    first = trainer.evaluate(split)
    for each, saved in zip(before, kept, strict=True):
        assert apart(each, saved) == 0.0
    assert first[0][0] == trainer.evaluate(split)[0][0]
    turned = {name: values.flip(0) for name, values in split.items()}
    assert first[0][0]["loss"] != pytest.approx(trainer.evaluate(turned)[0][0]["loss"], rel=1e-9)


@pytest.mark.parametrize("strategy", ["loop", "fused"])
def test_a_job_whose_evaluation_trains_goes_on_as_if_it_had_not_been_interrupted(
    strategy: Strategy, tmp_path: Path
) -> None:
    family = FAMILIES["language"]
    family.write_data(tmp_path)
    more = {
        "options": {**family.options, "evaluation_trains": True},
        "optimiser": {"kind": "sgd-summed"},
        "fixed": {"lr": 0.01, "weight_decay": 1e-6},
        "seeds": 2,
    }
    runs, _ = planned("rnn-sigmoid", tmp_path, tmp_path, **more)
    whole = train_job(job_of(runs, None, tmp_path / "whole", tmp_path, strategy=strategy))
    assert set(ends(whole).values()) == {"done"}
    for count in (2, 3 if strategy == "fused" else 6):  # in the middle, and when only the test pass is missing
        parts = train_job(job_of(runs, None, tmp_path / f"parts{count}", tmp_path, strategy=strategy), count)
        rest = train_job(job_of(runs, None, tmp_path / f"parts{count}", tmp_path, saved_in(parts), strategy=strategy))
        assert numbers(parts) | numbers(rest) == numbers(whole)


def test_evaluation_that_trains_changes_the_run_on_validation_and_not_on_test(tmp_path: Path) -> None:
    """Frozen and online runs part after the first validation pass; more ways to be tested change nothing."""
    family = FAMILIES["language"]
    family.write_data(tmp_path)
    found: dict[bool, list[Message]] = {}
    for trains in (False, True):
        more = {"options": {**family.options, "evaluation_trains": trains}, "seeds": 1}
        runs, _ = planned("rnn-tanh", tmp_path, tmp_path, **more)
        found[trains] = train_job(job_of(runs, None, tmp_path / str(trains), tmp_path, strategy="loop"))
    first, second = (
        [message.records[0].metrics["train_loss"] for message in found[trains] if isinstance(message, EpochDone)]
        for trains in (False, True)
    )
    assert first[0] == second[0]
    assert first[1] != second[1]
    (end,) = [message for message in found[True] if isinstance(message, RunEnded)]
    last = saved_in(found[True])[runs[0].identity][0]
    again = make_group(job_of(runs, None, tmp_path / "True", tmp_path, strategy="loop"))
    checkpoint.restore(tmp_path / "True", last, again.states[0])
    state = again.states[0]
    steps = task_of(find("rnn-tanh", tmp_path)).sizes(again.data, runs[0].options)
    assert state.steps == 3 * (steps["train"] + steps["val"]), "the pass over the test text is no part of the run"
    (losses,) = worker.make_engine(again, "loop").train_on(again.split("test", {}))
    outcomes = again.task.outcomes_from_losses(again.split("test", {}), losses)  # type: ignore[attr-defined]
    score = again.task.score(outcomes)
    assert end.finals[0].metrics == score[0]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["rnn-sigmoid", "transformer"])
def test_a_pass_without_learning_is_evaluation_with_dropout(name: str, rule: str, tmp_path: Path) -> None:
    """Without dropout it is the evaluation; with it, the pass that trains only before its first update."""
    design = find(name, tmp_path)
    runs = [make_run(design, seed=seed, batch=1, dropout=rate, **RULES[rule]) for seed, rate in ((0, 0.0), (1, 0.3))]
    looped, fused = begin(design, runs), begin(design, runs)
    trainer, trainers = fused.fused(), looped.looped()
    trainer.train_epoch(text(0), silent)
    for each in trainers:
        each.train_epoch(text(0), silent)
    test, before = text(2, 3), [{key: each.clone() for key, each in state.params.items()} for state in fused.states]
    plain = [metrics["loss"] for metrics, _ in trainer.evaluate(test)]
    found = trainer.train_on(test, learning=False)
    for state, params in zip(fused.states, before, strict=True):
        assert apart(state.params, params) == 0.0
    for losses, each in zip(found, trainers, strict=True):
        np.testing.assert_allclose(losses, each.train_on(test, learning=False)[0], rtol=1e-10)
    task = task_of(design)
    scores = [task.score(task.outcomes_from_losses(test, losses))[0]["loss"] for losses in found]  # type: ignore[attr-defined]
    assert scores[0] == pytest.approx(plain[0], rel=1e-6), "no dropout"
    assert scores[1] != pytest.approx(plain[1], rel=1e-3), "dropout"


@pytest.mark.parametrize("strategy", ["loop", "fused"])
def test_runs_tested_with_and_without_dropout_are_trained_once(strategy: Strategy, tmp_path: Path) -> None:
    family = FAMILIES["language"]
    family.write_data(tmp_path)
    arm = {"design": "rnn-sigmoid", "build": options_of(find("rnn-sigmoid", tmp_path))}
    arms = [{"name": "one", **arm}, {"name": "two", **arm, "evaluation": {"training_mode": True}}]
    runs, _ = planned("rnn-sigmoid", tmp_path, tmp_path, seeds=2, fixed={"lr": 0.003, "dropout": 0.5}, arms=arms)
    assert len(runs) == 2
    messages = train_job(job_of(runs, None, tmp_path / strategy, tmp_path, strategy=strategy))
    last = saved_in(messages)
    for end in (message for message in messages if isinstance(message, RunEnded)):
        scores = {final.evaluation: final.metrics["loss"] for final in end.finals}
        assert list(scores) == ["default", "training_mode=True"]
        assert scores["default"] != pytest.approx(scores["training_mode=True"], rel=1e-3)
    again = make_group(job_of(runs, None, tmp_path / strategy, tmp_path, strategy=strategy))
    steps = again.task.sizes(again.data, runs[0].options)["train"]
    for run, state in zip(runs, again.states, strict=True):
        checkpoint.restore(tmp_path / strategy, last[run.identity][0], state)
        assert state.steps == 3 * steps, "testing is no part of the run"


@pytest.mark.parametrize("way", ["dropout", "training"])
def test_a_run_that_stopped_early_is_tested_as_if_alone(way: str, tmp_path: Path) -> None:
    """Its cohort's dropout keys, learning rate and memory of the optimiser go on; the test pass starts at its own."""
    family = FAMILIES["language"]
    family.write_data(tmp_path)
    arm = {"design": "rnn-sigmoid", "build": options_of(find("rnn-sigmoid", tmp_path))}
    how = {"training_mode": True} if way == "dropout" else {}
    more = {
        "options": {**family.options, "evaluation_trains": way == "training"},
        "fixed": {"lr": 0.5, "dropout": 0.5, "momentum": 0.9},
        "optimiser": {"kind": "sgd", "schedule": {"kind": "linear", "floor": 0.1}},
        "budget": {"epochs": 8, "batch": 1, "patience": 1},
        "arms": [{"name": "one", **arm}, {"name": "two", **arm, "evaluation": how}],
    }
    runs, _ = planned("rnn-sigmoid", tmp_path, tmp_path, **more)

    def scores(messages: list[Message]) -> dict[str, tuple[int, dict[str, float]]]:
        found = [message for message in messages if isinstance(message, RunEnded)]
        return {each.record.identity: (each.record.epoch, dict(each.finals[-1].metrics)) for each in found}

    together = scores(train_job(job_of(runs, None, tmp_path / "together", tmp_path)))
    assert len({epoch for epoch, _ in together.values()}) > 1, "they stopped at different epochs"
    alone = scores(train_job(job_of(runs, None, tmp_path / "loop", tmp_path, strategy="loop")))
    for identity, (epoch, metrics) in alone.items():
        assert together[identity][0] == epoch
        assert together[identity][1] == pytest.approx(metrics, rel=1e-4)
    saved = saved_in(train_job(job_of(runs, None, tmp_path / "killed", tmp_path), 4))
    assert scores(train_job(job_of(runs, None, tmp_path / "killed", tmp_path, saved))) == together
