"""Whole training jobs of fused runs: interrupted, diverging, and out of memory, they give the same numbers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from support.fused_jobs import ends, job_of, numbers, saved_in, train_job
from support.twins import designs_with_slow_ones, planned
from tiebreak.drive.messages import EpochDone, Message, Note
from tiebreak.plan.runs import Run
from tiebreak.train.fused.program import Traced

pytestmark = pytest.mark.usefixtures("one_thread", "save_every_epoch")
some_designs = pytest.mark.parametrize("name", designs_with_slow_ones())


@some_designs
def test_a_job_continued_from_its_checkpoints_is_the_job_without_interruption(
    name: str, tmp_path: Path, family_data: Path
) -> None:
    """And, for one of them, also when the job's runs are at different epochs: two have lost states."""
    runs, own = planned(name, tmp_path, family_data)
    whole = train_job(job_of(runs, own, tmp_path / "whole", family_data))
    assert ends(whole) == {run.identity: "done" for run in runs}
    assert len(saved_in(whole)) == len(runs) == 3
    parts = train_job(job_of(runs, own, tmp_path / "parts", family_data), 2)
    saved = saved_in(parts)
    assert {len(records) for records in saved.values()} == {2}
    rest = train_job(job_of(runs, own, tmp_path / "parts", family_data, saved))
    assert len([message for message in rest if isinstance(message, EpochDone)]) == 1
    assert numbers(parts) | numbers(rest) == numbers(whole)
    if name == "normed":
        del saved[runs[1].identity], saved[runs[2].identity][0]
        rest = train_job(job_of(runs, own, tmp_path / "parts", family_data, saved))
        assert ends(rest) == ends(whole)
        assert numbers(parts) | numbers(rest) == numbers(whole)
        assert len([message for message in rest if isinstance(message, EpochDone)]) == 3 + 2 + 1


@some_designs
def test_a_run_that_diverges_in_a_job_is_told_and_the_others_end_as_without_it(
    name: str, tmp_path: Path, family_data: Path
) -> None:
    runs, own = planned(
        name, tmp_path, family_data, optimiser={"kind": "sgd"}, fixed={}, grid={"lr": [0.01, 1e6]}, seeds=1
    )
    mild, wild = sorted(runs, key=lambda run: run.hypers["lr"] or 0.0)
    other = mild.model_copy(update={"seed": 7})
    alone = numbers(train_job(job_of([mild, other], own, tmp_path / "alone", family_data)))
    messages = train_job(job_of([mild, wild, other], own, tmp_path / "with", family_data))
    status = ends(messages)
    assert status == {mild.identity: "done", wild.identity: status[wild.identity], other.identity: "done"}
    found = numbers(messages)
    assert {key: found[key] for key in alone} == alone
    if name in ("cnn-pool", "mlp", "attention-rows", "small-residual"):  # others saturate or normalise, and survive
        assert status[wild.identity] == "diverged"
        assert found[wild.identity][2].startswith(f"epoch {found[wild.identity][1]}: ")
        assert found[wild.identity][3] == []
        assert not any(run == wild.trajectory and epoch > found[wild.identity][1] for run, epoch in pairs(found))


def pairs(found: Mapping[Any, Any]) -> list[tuple[str, int]]:
    return [key for key in found if isinstance(key, tuple)]


CLUMSY = """
from pathlib import Path
import torch
from torch import nn

LEFT = Path(__file__).with_suffix(".left")  # how many accidents are to come: the file is loaded more than once

class Clumsy(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.out = nn.Linear(shape.channels * shape.height * shape.width, shape.classes)

    def forward(self, images):
        left = int(LEFT.read_text())
        if self.training and left:
            LEFT.write_text(str(left - 1))
            raise torch.OutOfMemoryError("an accident")
        return self.out(images.flatten(1))

DESIGNS = {"clumsy": Clumsy}
"""


def clumsy_runs(tmp_path: Path, family_data: Path, seeds: int) -> tuple[list[Run], str]:
    path = tmp_path / "clumsy.py"
    path.write_text(CLUMSY, "utf-8")
    path.with_suffix(".left").write_text("0")
    arms = [{"name": each, "design": "clumsy"} for each in ("one", "two")]
    more = {"designs_from": str(path), "arms": arms, "seeds": seeds}
    return planned("cnn-strided", tmp_path, family_data, **more)[0], str(path)


def halvings(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """How many runs did not fit, and how many go on at a time, from the notes to the user."""
    notes = [message.text for message in messages if isinstance(message, Note)]
    assert all("out of memory" in note for note in notes)
    return [(int(many), int(few)) for many, few in (re.findall(r"\d+", note) for note in notes)]


@pytest.mark.parametrize(("seeds", "accidents", "told"), [(5, 2, [(5, 2), (2, 1)]), (4, 1, [(4, 2)]), (3, 2, [(3, 1)])])
def test_out_of_memory_halves_the_job_and_loses_nothing(
    tmp_path: Path, family_data: Path, seeds: int, accidents: int, told: list[tuple[int, int]]
) -> None:
    runs, own = clumsy_runs(tmp_path, family_data, seeds)
    whole = numbers(train_job(job_of(runs, own, tmp_path / "whole", family_data)))
    (tmp_path / "clumsy.left").write_text(str(accidents))
    job = job_of(runs, own, tmp_path / "halved", family_data)
    messages = train_job(job)
    assert halvings(messages) == told
    if (seeds, accidents) == (3, 2):  # a single run cannot be halved: it fails, and only it
        assert [ends(messages)[run.identity] for run in runs] == ["failed", "done", "done"]
        return
    assert ends(messages) == {run.identity: "done" for run in runs}
    assert numbers(messages) == whole


def test_out_of_memory_in_the_middle_goes_on_from_the_last_states(
    tmp_path: Path, family_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than two runs do not fit from the fifth step on (an epoch has three): nothing is trained twice but that."""
    runs, own = clumsy_runs(tmp_path, family_data, 5)
    whole = numbers(train_job(job_of(runs, own, tmp_path / "whole", family_data)))
    advance, steps = Traced.advance, itertools.count(1)

    def tight(self: Traced, inputs: Any, first: int, left: int) -> int:
        if inputs["indices"].shape[1] > 2 and next(steps) >= 5:
            raise torch.OutOfMemoryError("more than two")
        return advance(self, inputs, first, left)

    monkeypatch.setattr(Traced, "advance", tight)
    messages = train_job(job_of(runs, own, tmp_path / "halved", family_data))
    assert halvings(messages) == [(5, 2), (3, 1)]
    assert numbers(messages) == whole
    done = [message for message in messages if isinstance(message, EpochDone)]
    trained = [(record.trajectory, record.epoch) for message in done for record in message.records]
    assert sorted(trained) == sorted((run.trajectory, epoch) for run in runs for epoch in (1, 2, 3))


def test_another_error_is_not_taken_for_a_lack_of_memory(
    tmp_path: Path, family_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, own = clumsy_runs(tmp_path, family_data, 2)

    def broken(*arguments: Any) -> int:
        raise RuntimeError("broken")

    monkeypatch.setattr(Traced, "advance", broken)
    messages = train_job(job_of(runs, own, tmp_path, family_data))
    assert not any(isinstance(message, Note) for message in messages)
    assert ends(messages) == {run.identity: "failed" for run in runs}
