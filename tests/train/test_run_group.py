from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from support.small_study import cohort_job, make_job, one_run, one_thread, write_data
from tiebreak.errors import TiebreakError
from tiebreak.train.run_group import make_group, out_of_memory


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Iterator[Path]:
    with one_thread():
        yield write_data(tmp_path / "data")


def test_initial_weights_are_those_of_the_seed(tmp_path: Path, data: Path) -> None:
    run = one_run(data)
    (one,), (two,) = (make_group(make_job(run, tmp_path, data)).states for _ in range(2))
    assert all(torch.equal(value, two.params[name]) for name, value in one.params.items())
    (other,) = make_group(make_job(run.model_copy(update={"seed": 1}), tmp_path, data)).states
    assert not any(torch.equal(value, other.params[name]) for name, value in one.params.items())


def test_a_group_has_a_state_for_each_run_and_the_network_of_the_first(tmp_path: Path, data: Path) -> None:
    runs = [one_run(data).model_copy(update={"seed": seed}) for seed in (3, 1, 2)]
    group = make_group(cohort_job(runs, tmp_path, data))
    assert [run.seed for run in group.runs] == [3, 1, 2]
    for run, state in zip(runs, group.states, strict=True):
        (alone,) = make_group(make_job(run, tmp_path, data)).states
        assert all(torch.equal(values, alone.params[name]) for name, values in state.params.items())
    own = dict(group.network.named_parameters())
    assert all(values.data_ptr() == own[name].data_ptr() for name, values in group.states[0].params.items())
    some = make_group(cohort_job(runs, tmp_path, data), runs[1:])
    assert [run.seed for run in some.runs] == [1, 2]


def test_a_split_is_on_the_device(tmp_path: Path, data: Path) -> None:
    group = make_group(make_job(one_run(data), tmp_path, data))
    assert {name: len(values) for name, values in group.split("train", {}).items()} == {"images": 96, "labels": 96}
    assert all(values.device == group.device for values in group.split("test", {}).values())


def test_data_that_changed_since_the_plan_is_refused(tmp_path: Path, data: Path) -> None:
    other = one_run(data).model_copy(update={"checksum": "0" * 64})
    with pytest.raises(TiebreakError, match="pneumoniamnist changed since the plan"):
        make_group(make_job(other, tmp_path, data))


def test_only_a_lack_of_memory_is_out_of_memory() -> None:
    assert out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"))
    assert not out_of_memory(RuntimeError("shapes differ"))
    assert not out_of_memory(ValueError("can't allocate memory"))
