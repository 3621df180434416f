"""Studies of a program from end to end: what is stored, what is repeated, what stops the study."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from support import own_program
from support.own_program import how, run_in
from tiebreak.drive.machine import Machine
from tiebreak.drive.messages import Note, RunEnded, TrainingStarted
from tiebreak.errors import TiebreakError
from tiebreak.program.program_driver import check_start
from tiebreak.program.run_folder import RUN_VARIABLE
from tiebreak.results.record import PROGRAM_RUNS
from tiebreak.results.store import Store


def statuses(folder: Path) -> list[str]:
    with closing(Store.open(folder)) as store:
        return sorted(record.status for record in store.records().runs.values())


def test_all_runs_are_done_once(tmp_path: Path) -> None:
    made = own_program.study(tmp_path, program={"epochs": "metrics.jsonl"})
    plan, messages = run_in(tmp_path / "out", made)
    assert isinstance(messages[0], TrainingStarted)
    assert (len(messages[0].runs), messages[0].unit) == (4, "run")
    with closing(Store.open(tmp_path / "out")) as store:
        records = store.records()
    run = plan.runs[plan.arm("high").run({}, 1)]
    assert sorted(records.epochs[run.trajectory][2].metrics) == ["train_loss", "val_accuracy"]
    assert records.finals[run.identity]["default"].metrics["accuracy"] == pytest.approx(0.9, abs=0.01)
    assert "seed 1  1" in (tmp_path / "out" / PROGRAM_RUNS / f"{run.identity}.log").read_text()
    _, again = run_in(tmp_path / "out", made)
    assert not [message for message in again if isinstance(message, RunEnded)]
    more = own_program.study(tmp_path, program={"epochs": "metrics.jsonl"}, seeds=3)
    assert sum(isinstance(message, RunEnded) for message in run_in(tmp_path / "out", more)[1]) == 2


def test_a_crash_is_one_failed_run_that_is_tried_again(tmp_path: Path) -> None:
    made = own_program.study(tmp_path, **how("crash"))
    plan, _ = run_in(tmp_path / "out", made)
    assert statuses(tmp_path / "out") == ["done", "done", "failed", "failed"]
    with closing(Store.open(tmp_path / "out")) as store:
        record = store.records().runs[plan.arm("low").run({}, 1)]
    assert "out of luck" in record.reason
    assert record.output.splitlines()[-1] == "out of luck"
    _, messages = run_in(tmp_path / "out", made)
    assert {message.record.identity for message in messages if isinstance(message, RunEnded)} == {
        plan.arm(arm).run({}, 1) for arm in ("high", "low")
    }
    starts = tmp_path / "out" / PROGRAM_RUNS / record.identity / "starts"
    assert starts.read_text() == "2"  # the same folder


@pytest.mark.parametrize(
    ("way", "found"),
    [("nan", ["diverged", "diverged", "done", "done"]), ("missing", ["failed"] * 4), ("malformed", ["failed"] * 4)],
)
def test_other_ends(tmp_path: Path, way: str, found: list[str]) -> None:
    run_in(tmp_path / "out", own_program.study(tmp_path, **how(way)))
    assert statuses(tmp_path / "out") == found


def test_the_time_limit(tmp_path: Path) -> None:
    changes = how("sleep", program={"timeout": "1 s"}, seeds=1)
    run_in(tmp_path / "out", own_program.study(tmp_path, **changes))
    assert statuses(tmp_path / "out") == ["failed", "failed"]


def test_scores_without_the_metric_stop_the_study(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match=r"study toy: .*scores\.json: no test\.accuracy"):
        run_in(tmp_path / "out", own_program.study(tmp_path, **how("other")))
    assert statuses(tmp_path / "out") == []


def test_gpus_that_runs_do_not_see_and_cores_that_are_not_there_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    _, messages = run_in(tmp_path / "out", own_program.study(tmp_path, seeds=1, program={"cores": 4096}))
    for words in ("2 GPUs", "4096"):
        assert any(isinstance(each, Note) and words in each.text for each in messages)
    _, messages = run_in(tmp_path / "two", own_program.study(tmp_path, seeds=1, program={"gpus": 0.5}))
    assert not any(isinstance(each, Note) for each in messages)
    logs = [path.read_text() for path in (tmp_path / "two" / PROGRAM_RUNS).glob("*.log")]
    assert sorted(log.splitlines()[1] for log in logs) == ["seed 0 0 1", "seed 0 1 1"]


def test_a_program_that_changes_meanwhile_stops_the_study(tmp_path: Path) -> None:
    """Its later runs would be stored under the name of the earlier version."""
    made = own_program.study(tmp_path)
    script = tmp_path / "toy.py"
    script.write_text(own_program.PROGRAM + "open(sys.argv[0], 'a').write('# more')\n")
    with pytest.raises(TiebreakError, match=r"toy\.py has changed"):
        run_in(tmp_path / "out", made, workers=1)
    assert statuses(tmp_path / "out") == ["done"]


def test_what_cannot_start_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    made = own_program.study(tmp_path)
    with pytest.raises(TiebreakError, match="--device"):
        check_start(made, Machine(device="cuda"), allow=True)
    with pytest.raises(TiebreakError, match="--on"):
        check_start(made, Machine(on="ray"), allow=True)
    with pytest.raises(TiebreakError, match="--allow-program"):
        check_start(made, Machine(), allow=False)
    check_start(made, Machine(), allow=True)
    with pytest.raises(TiebreakError, match=r"program\.gpus"):
        check_start(own_program.study(tmp_path, program={"gpus": 1}), Machine(), allow=True)


@pytest.mark.torture
def test_kill_of_the_command_ends_the_programs_and_loses_nothing(tmp_path: Path) -> None:
    """`kill -9` of `tiebreak run`: no process is left, finished runs stay, unfinished ones get their folder again."""
    changes = how("sleep-once", seeds=1)
    path, out = own_program.write(tmp_path, **changes), tmp_path / "out"
    command = [sys.executable, "-m", "tiebreak", "run", str(path), "--out", str(out), "--allow-program"]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    with subprocess.Popen([*command, "--workers", "1"], env=environment, stdout=subprocess.DEVNULL) as first:
        while not list((out / PROGRAM_RUNS).glob("*/child")):
            assert first.poll() is None
            time.sleep(0.05)
        first.send_signal(signal.SIGKILL)
    runs = out / PROGRAM_RUNS
    deadline = time.monotonic() + 60
    while left := [each for each in psutil.process_iter() if _folder_of(each).startswith(str(runs))]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(starts.read_text() for starts in runs.glob("*/starts")) == ["1", "2"]


def _folder_of(process: psutil.Process) -> str:
    try:
        return process.environ().get(RUN_VARIABLE, "") if process.status() != psutil.STATUS_ZOMBIE else ""
    except (psutil.Error, OSError):
        return ""
