"""The file beside a run: at most once a second, with rates and times, gone at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiebreak.drive.messages import ClusterState, MachineState, Message, Note, PendingRun, Progress, TrainingStarted
from tiebreak.drive.progress_file import ProgressFile, progress_file
from tiebreak.results.live_progress import LIVE_FILE, MachineLoad, read_live


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


STARTED = TrainingStarted(
    runs={
        f"cnn-{seed}": PendingRun(
            label=f"cnn seed {seed}", cohort="cnn", trajectory=f"path {seed}", epochs=4, done=0, strategy="fused"
        )
        for seed in range(2)
    },
    steps=10,
    stored=0,
    workers=1,
)


def test_the_time_left_follows_from_what_was_gained(tmp_path: Path) -> None:
    heard: list[Message] = []
    clock = Clock()
    file = ProgressFile(tmp_path, heard.append, clock)
    messages: list[Message] = [STARTED]
    messages += [Progress(identities=("cnn-0", "cnn-1"), epochs=reached, rate=20.0) for reached in (1.0, 2.5)]
    for message in messages:
        file.on_message(message)
        clock.now += 30.0
    live = read_live(tmp_path)
    assert heard == messages
    assert live is not None
    # from a quarter to five eighths of the work took 30 seconds, and three eighths are left
    assert live.seconds_left == pytest.approx(30.0)
    assert (live.rate, live.doing) == (20.0, "training")
    (cohort,) = live.cohorts
    assert (cohort.name, cohort.epochs_left) == ("cnn", 3.0)  # one and a half of each run
    assert cohort.seconds_left == pytest.approx(2 * 1.5 * 10 / 20.0)


def test_the_machines_of_a_cluster_are_told(tmp_path: Path) -> None:
    file = ProgressFile(tmp_path, lambda _: None)
    node = MachineState(name="node7", cores=8, cores_in_use=6, gpus=1, jobs=3, alive=True)
    file.on_message(ClusterState(machines=(node,)))
    live = read_live(tmp_path)
    assert live is not None
    assert live.machines == (MachineLoad(name="node7", cores=8, cores_used=6, gpus=1, jobs=3, alive=True),)


def test_it_is_written_at_most_once_a_second(tmp_path: Path) -> None:
    clock = Clock()
    file = ProgressFile(tmp_path, lambda _: None, clock)
    file.on_message(Note(text="timing cnn"))
    file.on_message(STARTED)
    live = read_live(tmp_path)
    assert live is not None
    assert live.doing == "timing cnn"


def test_it_is_there_from_the_beginning_and_gone_at_the_end(tmp_path: Path) -> None:
    kept = progress_file(tmp_path, lambda _: None)
    kept.__enter__()
    assert read_live(tmp_path) is not None
    assert not kept.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_told_once_and_training_goes_on(tmp_path: Path) -> None:
    (tmp_path / LIVE_FILE).mkdir()
    heard: list[Message] = []
    clock = Clock()
    file = ProgressFile(tmp_path, heard.append, clock)
    for _ in range(3):
        file.on_message(STARTED)
        clock.now += 5.0
    (note,) = (message for message in heard if isinstance(message, Note))
    assert "cannot be written" in note.text
    assert heard.count(STARTED) == 3
