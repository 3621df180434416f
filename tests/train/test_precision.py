from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from support.small_study import cohort_job, one_run, one_thread, write_data
from tiebreak.drive.messages import RunEnded
from tiebreak.drive.worker import train
from tiebreak.train.precision import callable_in, in_dtype
from tiebreak.train.run_group import make_group


def test_only_bfloat16_rounds_inside_the_network_and_logits_are_float32() -> None:
    network, x = nn.Linear(64, 8), torch.rand(4, 64, generator=torch.Generator().manual_seed(0))
    assert callable_in(network, None) is network
    rounded = callable_in(network, "bfloat16")(x)
    assert rounded.dtype == torch.float32
    assert not torch.equal(rounded, network(x))
    assert torch.allclose(rounded, network(x), atol=0.02)


def test_whole_numbers_stay_what_they_are() -> None:
    assert in_dtype(torch.arange(3), "float64").dtype == torch.int64
    assert in_dtype(torch.zeros(3), "float64").dtype == torch.float64
    assert in_dtype(torch.zeros(3), "bfloat16").dtype == torch.float32


def test_a_job_in_float64_trains_and_evaluates_in_it(tmp_path: Path) -> None:
    with one_thread():
        data = write_data(tmp_path / "data")
        run = one_run(data, epochs=1, batch=32, precision="float64")
        assert run.precision == "float64"
        job = cohort_job([run], tmp_path / "out", data)
        group = make_group(job)
        assert {values.dtype for values in group.states[0].params.values()} == {torch.float64}
        assert group.split("val", {})["images"].dtype == torch.float64
        assert isinstance(list(train(job, lambda message: None))[-1], RunEnded)
