from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from support.small_study import (
    contents,
    epochs_in,
    is_alive,
    make_job,
    one_arm,
    one_thread,
    small_study,
    train_in,
    write_data,
)
from tiebreak.drive.messages import Note
from tiebreak.drive.recorder import record
from tiebreak.drive.worker import train
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import PLAN_FILE, evaluation_key
from tiebreak.results.check import check
from tiebreak.results.checkpoint_file import CHECKPOINTS
from tiebreak.results.store import Store
from tiebreak.study import parsing

BATCH = 3  # 32 steps an epoch: long enough to be killed in
PATIENCE_SECONDS = 300
KILLED = """
import os, signal, sys
from pathlib import Path
import psutil
import tiebreak as tb
from tiebreak.drive.messages import EpochDone
from tiebreak.drive.machine import Machine

file, folder, data, workers, strategy, driver_only, pids = sys.argv[1:]

def listen(message):
    if isinstance(message, EpochDone):
        Path(pids).write_text(" ".join(str(child.pid) for child in psutil.Process().children()))
        os.kill(os.getpid() if driver_only == "True" else 0, signal.SIGKILL)  # 0: the process group

machine = Machine(workers=int(workers), data_dir=Path(data), strategy=strategy)
tb.run(tb.Study.load(file), folder, machine=machine, listen=listen)
"""


@pytest.fixture(scope="module", name="data")
def _data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with one_thread():
        yield write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module", name="whole")
def _whole(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    """Two arms, two seeds, three epochs, never interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    train_in(folder, data, small_study(batch=BATCH))
    return folder


@pytest.fixture(scope="module", name="short")
def _short(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    """The same with two epochs."""
    folder = tmp_path_factory.mktemp("short")
    train_in(folder, data, small_study(batch=BATCH, epochs=2))
    return folder


def copy_of(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def holds(more: dict[str, Any], less: dict[str, Any]) -> bool:
    """Whether all that one folder holds is in the other, bit for bit."""
    return all(less[kind].items() <= more[kind].items() for kind in less)


def clocks(folder: Path) -> dict[tuple[str, int], Any]:
    """The seconds of every stored epoch: an epoch that was kept has the clock of its one training."""
    with closing(Store.open(folder)) as store:
        epochs = store.records().epochs
    return {(key, epoch): row.seconds for key, rows in epochs.items() for epoch, row in rows.items()}


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def run_and_kill(command: list[str], folder: Path, *, driver_only: bool) -> None:
    """Start the command, which kills itself after its next epoch, and wait until its workers are gone too."""
    workers = folder.parent / "workers"
    done = subprocess.run(
        [*command, str(driver_only), str(workers)], start_new_session=True, capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    pids = [int(pid) for pid in workers.read_text().split()]
    assert pids
    wait_until(lambda: not any(is_alive(pid) for pid in pids))


def test_a_study_killed_again_and_again_is_the_study_without_interruption(
    tmp_path: Path, data: Path, whole: Path
) -> None:
    study, folder, file = small_study(batch=BATCH), tmp_path / "out", tmp_path / "small.toml"
    file.write_text(parsing.to_toml(study))
    command = [sys.executable, "-c", KILLED, str(file), str(folder), str(data)]
    stored: dict[tuple[str, int], Any] = {}
    for workers, driver_only in ((1, False), (2, True)):
        run_and_kill([*command, str(workers), "loop"], folder, driver_only=driver_only)
        assert stored.items() <= clocks(folder).items()  # what was acknowledged stays
        assert check(folder)[1] == []
        stored = clocks(folder)
    assert len(stored) == 2

    _, heard = train_in(folder, data, study)
    assert len(epochs_in(heard)) == 12 - len(stored)  # nothing is trained twice but what a kill interrupted
    assert set(epochs_in(heard)) == set(clocks(folder)) - set(stored)
    assert stored.items() <= clocks(folder).items()
    assert contents(folder) == contents(whole)
    assert len(contents(folder)["checkpoints"]) == len(list((folder / CHECKPOINTS).iterdir())) == 4
    assert check(folder)[1] == []


def test_a_fused_study_that_is_killed_is_the_study_without_interruption(tmp_path: Path, data: Path) -> None:
    study, file = small_study(batch=BATCH), tmp_path / "small.toml"
    file.write_text(parsing.to_toml(study))
    train_in(tmp_path / "whole", data, study, strategy="fused")
    whole, folder = contents(tmp_path / "whole"), tmp_path / "out"
    command = [sys.executable, "-c", KILLED, str(file), str(folder), str(data)]
    run_and_kill([*command, "1", "fused"], folder, driver_only=True)
    assert check(folder)[1] == []
    stored = clocks(folder)
    assert 2 <= len(stored) <= 12  # two runs at a time

    train_in(folder, data, study, strategy="fused")
    assert stored.items() <= clocks(folder).items()
    assert contents(folder) == whole
    assert len(contents(folder)["checkpoints"]) == len(list((folder / CHECKPOINTS).iterdir())) == 4
    assert check(folder)[1] == []


def test_more_seeds_train_only_the_new_ones(tmp_path: Path, data: Path, short: Path) -> None:
    folder = copy_of(short, tmp_path)
    plan, heard = train_in(folder, data, small_study(batch=BATCH, epochs=2, seeds=3))
    new = {run.trajectory for run in plan.runs.values() if run.seed == 2}
    assert sorted(epochs_in(heard)) == sorted((trajectory, epoch) for trajectory in new for epoch in (1, 2))
    assert holds(contents(folder), contents(short))
    assert len(contents(folder)["finals"]) == 6


def test_more_epochs_continue_where_the_shorter_study_ended(
    tmp_path: Path, data: Path, short: Path, whole: Path
) -> None:
    folder = copy_of(short, tmp_path)
    plan, heard = train_in(folder, data, small_study(batch=BATCH))
    assert sorted(epochs_in(heard)) == sorted((run.trajectory, 3) for run in plan.runs.values())
    found = contents(folder)
    assert holds(found, contents(whole))
    assert holds(found, contents(short))
    _, heard = train_in(folder, data, small_study(batch=BATCH, epochs=2))
    assert epochs_in(heard) == []
    assert contents(folder) == found


def test_fewer_epochs_leave_the_longer_study_as_it_is(tmp_path: Path, data: Path, short: Path, whole: Path) -> None:
    folder = copy_of(whole, tmp_path)
    train_in(folder, data, small_study(batch=BATCH, epochs=2))
    found = contents(folder)
    assert holds(found, contents(whole))
    assert holds(found, contents(short))
    _, heard = train_in(folder, data, small_study(batch=BATCH))
    assert epochs_in(heard) == []


def test_another_evaluation_of_the_same_runs_trains_nothing(tmp_path: Path, data: Path, short: Path) -> None:
    folder = copy_of(short, tmp_path)
    moved = {"name": "moved", "design": "cnn-pool", "evaluation": {"shift": 2}}
    study = small_study(batch=BATCH, epochs=2)
    arms = [*study.model_dump(mode="json", exclude_none=True)["arms"], moved]
    plan, heard = train_in(folder, data, small_study(batch=BATCH, epochs=2, arms=arms))
    assert plan.arm("moved").runs == plan.arm("pool").runs
    assert epochs_in(heard) == []
    found = contents(folder)
    assert holds(found, contents(short))
    names = {identity: {name for key, name in found["finals"] if key == identity} for identity in plan.runs}
    for identity, run in plan.runs.items():
        assert names[identity] == {evaluation_key(item) for item in run.evaluations}
        assert ("shift=2" in names[identity]) is (run.design == "cnn-pool")


def test_a_damaged_checkpoint_is_named_and_the_result_is_the_same(tmp_path: Path, data: Path) -> None:
    plan = make_plan(one_arm(), data)
    (run,) = plan.runs.values()
    for name, messages in (("whole", None), ("parts", 2)):
        (tmp_path / name).mkdir()
        with closing(Store.create(tmp_path / name)) as store:
            job = make_job(run, tmp_path / name, data)
            for message in islice(train(job, lambda message: None), messages):
                record(store, tmp_path / name, message)
    folder = tmp_path / "parts"
    (folder / PLAN_FILE).write_text(plan.model_dump_json())
    last = folder / CHECKPOINTS / f"{run.identity}-2.safetensors"
    content = bytearray(last.read_bytes())
    content[-100] ^= 4
    last.write_bytes(content)
    assert check(folder)[1] == [f"{last}: damaged, its sha256 is not the recorded one"]

    _, heard = train_in(folder, data, one_arm())
    assert [message for message in heard if isinstance(message, Note)] == [
        Note(text=f"{last}: damaged, its sha256 is not the recorded one; using the one before it")
    ]
    assert epochs_in(heard) == [(run.trajectory, 2), (run.trajectory, 3)]
    assert contents(folder) == contents(tmp_path / "whole")
    assert check(folder)[1] == []
