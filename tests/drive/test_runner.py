from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.made_up import ended, epoch_done, state
from support.small_study import (
    cohort_job,
    contents,
    epochs_in,
    one_arm,
    one_thread,
    small_study,
    train_plan,
    worker_processes,
    write_data,
)
from tiebreak.drive.jobs import StrategyOption
from tiebreak.drive.machine import Machine, check_precision
from tiebreak.drive.messages import EpochDone, ExhibitsMade, Message, Note, TrainingStarted
from tiebreak.drive.recorder import record
from tiebreak.drive.runner import CHECKSUMS_FILE, missing, open_driver, open_workers
from tiebreak.drive.worker import train
from tiebreak.errors import TiebreakError
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import PLAN_FILE, Plan, Run
from tiebreak.results.check import check
from tiebreak.results.checkpoint_file import CHECKPOINTS
from tiebreak.results.store import Store
from tiebreak.system import cores

EVALUATED = [
    {"name": "still", "design": "cnn-strided"},
    {"name": "moved", "design": "cnn-strided", "evaluation": {"shift": 2}},
]


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Iterator[Path]:
    with one_thread():
        yield write_data(tmp_path / "data")


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.create(tmp_path)) as store:
        yield store


def hear_epochs(run: Run, store: Store, folder: Path, epochs: int) -> None:
    (folder / CHECKPOINTS).mkdir()
    for epoch in range(1, epochs + 1):
        (folder / CHECKPOINTS / state(run, epoch).file).touch()
        record(store, folder, epoch_done(run, epoch))


def with_bad_run(plan: Plan) -> tuple[Plan, Run]:
    """The plan with a run whose design raises."""
    good = next(iter(plan.runs.values()))
    bad = good.model_copy(update={"build": {"width": 3}})
    return plan.model_copy(update={"runs": {bad.identity: bad, **plan.runs}}), bad


def test_a_machine_has_a_process_per_core_or_as_many_as_asked_for() -> None:
    assert Machine().processes() == cores()
    assert Machine(device="cuda").processes() == 1
    assert Machine(workers=3).processes() == 3


def test_bf16_is_for_studies_that_state_one_precision_at_most() -> None:
    assert Machine(precision="bf16").device_label == "cpu, bf16"
    check_precision(small_study(), "bf16")
    check_precision(small_study(precision="bfloat16"), "bf16")
    check_precision(small_study(precision="float64"), "float32")
    one = [
        {"name": "pool", "design": "cnn-pool", "precision": "bfloat16"},
        {"name": "strided", "design": "cnn-strided"},
    ]
    for more in ({"arms": one}, {"precision": "float64"}):
        with pytest.raises(TiebreakError, match=r"bf16.*states"):
            check_precision(small_study(**more), "bf16")


def test_tf32_is_for_a_gpu() -> None:
    assert Machine(device="cuda", precision="tf32").device_label == "cuda, tf32"
    assert Machine(device="cuda").device_label == "cuda"
    with pytest.raises(TiebreakError, match="--precision tf32 requires --device cuda"):
        Machine(precision="tf32")


@pytest.mark.parametrize(
    ("row", "evaluations", "wanted"),
    [
        (None, (), True),
        ({"status": "failed", "epoch": 0}, (), True),
        ({"status": "diverged", "epoch": 1}, (), False),
        ({"status": "done", "epoch": 3}, ("default", "shift=2"), False),
        ({"status": "done", "epoch": 3}, ("default",), True),
    ],
    ids=["never tried", "failed", "diverged", "done", "done but not evaluated in every way"],
)
def test_what_is_missing(
    tmp_path: Path,
    data: Path,
    store: Store,
    row: dict[str, object] | None,
    evaluations: tuple[str, ...],
    wanted: bool,
) -> None:
    plan = make_plan(one_arm(arms=EVALUATED), data)
    (run,) = plan.runs.values()
    if row is not None:
        record(store, tmp_path, ended(run, row, evaluations))
    assert missing(plan, store) == ([run] if wanted else [])


def test_files_that_nobody_acknowledged_are_removed(tmp_path: Path, data: Path) -> None:
    plan = make_plan(one_arm(), data)
    (run,) = plan.runs.values()
    with closing(Store.create(tmp_path)) as store:
        hear_epochs(run, store, tmp_path, 1)
        record(store, tmp_path, ended(run, {"status": "done", "epoch": 3}, ("default",)))
        with store.transaction():
            store.add_checkpoint(state(run, 3))
    for name in (state(run, 3).file, state(run, 2).file, f".{state(run, 3).file}.0a1b.part"):
        (tmp_path / CHECKPOINTS / name).touch()
    heard: list[Message] = []
    assert train_plan(plan, tmp_path, Machine(data_dir=data), heard.append) == 0
    assert heard == [TrainingStarted(runs={}, steps=12, stored=1, workers=0)]
    assert [path.name for path in (tmp_path / CHECKPOINTS).iterdir()] == [state(run, 3).file]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("strategy", ["fused", "loop"])
def test_failure_is_a_result_and_changes_no_neighbour(tmp_path: Path, data: Path, strategy: StrategyOption) -> None:
    study = one_arm(grid={"lr": [1e6, 0.003]}, fixed={}, epochs=2)
    plan, bad = with_bad_run(make_plan(study, data))
    wild, tame = (run for run in plan.runs.values() if run is not bad)
    folder = tmp_path / "out"
    folder.mkdir()
    machine, first = Machine(workers=1, data_dir=data, strategy=strategy), list[Message]()
    assert train_plan(plan, folder, machine, first.append) == 3
    found = contents(folder)
    assert found["runs"][wild.identity] == (wild.trajectory, "diverged", 1, "epoch 1: train loss nan")
    assert found["runs"][tame.identity] == (tame.trajectory, "done", 2, "")
    assert found["runs"][bad.identity][1] == "failed"
    assert "unexpected keyword argument 'width'" in found["runs"][bad.identity][3]
    assert epochs_in(first) == [(tame.trajectory, 1), (tame.trajectory, 2)]
    assert list(found["checkpoints"]) == [(tame.identity, 2)]

    alone = tmp_path / "alone"
    alone.mkdir()
    with closing(Store.create(alone)) as store:
        for message in train(cohort_job([tame], alone, data, strategy=strategy), lambda message: None):
            record(store, alone, message)
    for kind, rows in contents(alone).items():
        assert rows.items() <= found[kind].items()

    again: list[Message] = []
    assert train_plan(plan, folder, machine, again.append) == 1
    (begun,) = (message for message in again if isinstance(message, TrainingStarted))
    assert list(begun.runs) == [bad.identity]  # what failed is tried again, what diverged is not
    assert begun.stored == 2
    assert contents(folder) == found


def test_a_study_goes_on_when_a_worker_is_killed(tmp_path: Path, data: Path) -> None:
    plan = make_plan(one_arm(epochs=4, batch=2), data)
    (run,) = plan.runs.values()
    folder, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    heard: list[Message] = []

    def kill_after_two(message: Message) -> None:
        heard.append(message)
        if isinstance(message, EpochDone) and message.records[0].epoch == 2:
            os.kill(worker_processes()[0], signal.SIGKILL)

    for each, listen in ((folder, kill_after_two), (undisturbed, heard[:0].append)):
        each.mkdir()
        (each / PLAN_FILE).write_text(plan.model_dump_json())
        train_plan(plan, each, Machine(workers=1, data_dir=data), listen)
    assert any(isinstance(message, Note) and "signal 9" in message.text for message in heard)
    assert sorted(set(epochs_in(heard))) == [(run.trajectory, epoch) for epoch in (1, 2, 3, 4)]
    assert contents(folder) == contents(undisturbed)
    assert check(folder)[1] == []


def test_training_and_exhibits_use_one_set_of_workers(tmp_path: Path, data: Path) -> None:
    seen: dict[type, set[int]] = {}

    def listen(message: Message) -> None:
        seen.setdefault(type(message), set()).update(worker_processes())

    study, machine = one_arm(epochs=1), Machine(workers=1, data_dir=data)
    with open_workers(machine) as workers:
        assert not worker_processes()  # on a CPU none is started before there is work
        with open_driver(make_plan(study, data), tmp_path, machine, listen, workers) as driver:
            assert driver.train() == 1
            driver.make_exhibits(study)
        assert seen[EpochDone] == seen[ExhibitsMade] == set(worker_processes())
        assert len(seen[ExhibitsMade]) == 1
    assert not worker_processes()
    assert not (tmp_path / CHECKSUMS_FILE).exists()
