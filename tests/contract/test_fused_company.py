"""A run's numbers do not depend on which other runs it is fused with, bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from support.families import FAMILIES, task_of
from support.twins import EXAMPLES, apart, begin, designs_with_slow_ones, equal, find, grid, make_run, silent, split_of
from tiebreak.models.design import Design, Images
from tiebreak.streams import stream
from tiebreak.train.evaluate import Evaluation
from tiebreak.train.fused.engine import Fused
from tiebreak.train.step import State, initial_state

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("name", designs_with_slow_ones())
def test_a_runs_numbers_do_not_depend_on_its_company(design: Design) -> None:
    """Whatever the cohort's size (from 1 on: a lone run is padded to 2), order, and what becomes of the others."""
    runs = grid(design, "adamw")
    wild = runs[1].model_copy(update={"hypers": {**runs[1].hypers, "lr": 1e6, "dropout": 0.3}})
    split = split_of(design, EXAMPLES, torch.float32)
    seen: dict[int, tuple[State, float, Evaluation]] = {}
    for order in ((0, 1, 2, 3, 4), (1, 0), (3, 5, 2), (2,)):
        begun = begin(design, [[*runs, wild][number] for number in order], torch.float32)
        trainer = begun.fused()
        losses = trainer.train_epoch(split, silent)
        outcomes = trainer.evaluate(split)
        for number, state, loss, evaluation in zip(order, begun.states, losses, outcomes, strict=True):
            first, wanted, expected = seen.setdefault(number, (state, loss, evaluation))
            if number == 5:
                continue
            assert equal(state, first)
            assert loss == wanted
            assert evaluation[0] == expected[0]
            assert all((values == expected[1][name]).all() for name, values in evaluation[1].items())
    assert not size_of(seen[5][0]) < 100 * size_of(seen[1][0])  # the one that diverges: far away, or no number


def size_of(state: State) -> float:
    return sum(float(torch.linalg.vector_norm(values)) for values in state.params.values())


@pytest.mark.parametrize("channels", [2, 3])
def test_where_a_kernel_does_not_allow_it_company_shows_in_the_last_bits_only(channels: int, tmp_path: Path) -> None:
    """oneDNN's grouped convolution takes another kernel when all runs together have less than 8 input channels.

    Its forward over 2 or 3 channels (colours) sums in another order then: 2 or 3 runs of 2 channels, or 2 runs of 3,
    are apart from larger cohorts by rounding. From 8 channels in all on, and with one channel always, nothing is.
    """
    design = find("cnn-strided", tmp_path)
    small = Images(channels=channels, height=16, width=13, classes=3)
    split = FAMILIES["classifier"].examples(small, 8, 0)
    few = -(-8 // channels)  # as many runs as it takes
    runs = [make_run(design, seed=seed, dropout=0.0) for seed in range(few + 2)]
    params: dict[int, list[dict[str, Tensor]]] = {}
    for count in (2, few, few + 2):
        networks = [design.network(small, {}, stream(run.seed, "init")) for run in runs[:count]]
        states = [initial_state(network, run) for network, run in zip(networks, runs, strict=False)]
        trainer = Fused(task_of(design), networks[0], runs[:count], states)
        trainer.train_epoch(split, silent)
        params[count] = [state.params for state in states]
    for row in range(2):
        assert apart(params[few][row], params[few + 2][row]) == 0.0
        assert apart(params[2][row], params[few][row]) <= 1e-6
