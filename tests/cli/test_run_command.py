"""`tiebreak run` and `tiebreak plan`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from shutil import copytree

import pytest
import tomli_w
import torch

from support import bad_studies
from support.cli_fixtures import Finished, Tiebreak, one_line, process, write_study

# `tiebreak` that obeys SIGINT, even when this process was started as a background job, which ignores it.
INTERRUPTIBLE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from tiebreak.cli.app import main; main()"
)


@bad_studies.cases(bad_studies.UNKNOWN_KEYS, bad_studies.WRONG_TYPES, bad_studies.BROKEN_RULES)
def test_a_bad_study_file_is_one_line_code_2_and_nothing_written(
    bad: bad_studies.Bad, tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bad.toml"
    path.write_text(tomli_w.dumps(bad.content), "utf-8")
    done = tiebreak("run", "bad.toml")
    assert (done.code, done.out) == (2, "")
    bad.check(done.err, "tiebreak: bad.toml")
    assert done.err.count("\n") == 1
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("command", ["run", "plan"])
@pytest.mark.parametrize(
    ("name", "content", "hint"),
    [
        ("bad.toml", b"name = ", "bad.toml: not valid TOML"),
        ("bad.toml", b"\xff", "UTF-8"),
        ("gone.toml", None, "gone.toml: No such file"),
        ("folder.toml", "folder", "folder.toml: Is a directory"),
        ("poling", None, "'pooling'"),
    ],
    ids=["not TOML", "not UTF-8", "missing", "folder", "unknown"],
)
def test_what_is_no_study_file_is_one_line_and_code_2(
    command: str,
    name: str,
    content: bytes | str | None,
    hint: str,
    tiebreak: Tiebreak,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    if isinstance(content, bytes):
        Path(name).write_bytes(content)
    elif content is not None:
        Path(name).mkdir()
    done = tiebreak(command, name)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("tiebreak: ")
    assert name in done.err
    assert hint in done.err
    assert done.err.count("\n") == 1
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        (["--seeds", "0"], "--seeds 0: .* 1"),
        (["--seeds", "-1"], "--seeds -1: .* 1"),
        (["--epochs", "0"], "--epochs 0: .* 1"),
        (["--data", "octmnits"], "data: .*'octmnits'.*'octmnist'"),
        (["--data", "mnist"], r"mnist\.npz not found"),
        (["--data-dir", "nowhere"], "--data-dir nowhere"),
        (["--out", ""], "name of the results folder is empty"),
    ],
    ids=["no seeds", "negative seeds", "no epochs", "unknown data", "missing data", "missing folder", "no name"],
)
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_bad_option_is_one_line_and_code_2(
    command: str, options: list[str], pattern: str, tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = tiebreak(command, write_study(tmp_path), *options)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("tiebreak: ")
    assert re.search(pattern, done.err)
    assert done.err.count("\n") == 1


def test_reduced_precision_on_a_cpu_is_one_line_and_nothing_is_made(tiebreak: Tiebreak, tmp_path: Path) -> None:
    done = tiebreak("run", "pooling", "--quick", "--precision", "tf32", "--out", tmp_path / "out")
    assert done.code == 2
    assert "tf32" in done.err
    assert "--device cuda" in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_gpu_that_is_not_there_is_one_line_and_nothing_is_made(tiebreak: Tiebreak, tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    done = tiebreak("run", "pooling", "--quick", "--device", "cuda", "--out", tmp_path / "out")
    assert done.code == 2
    assert "--device cuda" in done.err
    assert "--device cpu" in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_missing_data_is_code_2_with_advice(tiebreak: Tiebreak, tmp_path: Path) -> None:
    done = tiebreak("run", "pooling", "--out", tmp_path / "out")
    assert done.code == 2
    for advice in ("`tiebreak data fetch octmnist`", "--data-dir", "--quick"):
        assert advice in done.err
    assert not (tmp_path / "out" / "plan.json").exists()


def test_an_out_folder_below_a_file_is_one_line(tiebreak: Tiebreak, tmp_path: Path, tiny_data_dir: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file" / "below", tmp_path / "file"):
        done = tiebreak("run", write_study(tmp_path), "--data-dir", tiny_data_dir, "--out", out)
        assert done.code == 2
        assert "--out" in done.err
        assert done.err.count("\n") == 1
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_that_may_not_be_written_is_one_line(tiebreak: Tiebreak, tmp_path: Path, tiny_data_dir: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    if os.access(locked, os.W_OK):
        pytest.skip("this user may write everywhere")
    done = tiebreak("run", write_study(tmp_path), "--data-dir", tiny_data_dir, "--out", locked / "out")
    assert done.code == 2
    assert "Permission denied" in done.err
    assert "--out" in done.err


def test_the_folder_of_another_study_is_refused(
    tiebreak: Tiebreak, folder: Path, tmp_path: Path, tiny_data_dir: Path
) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    done = tiebreak("run", write_study(tmp_path, name="other"), "--data-dir", tiny_data_dir, "--out", folder)
    assert done.code == 2
    assert all(part in done.err for part in (str(folder), "'tiny'", "'other'", "--out"))
    assert {path: path.read_bytes() for path in before} == before


def test_a_plan_shows_runs_parameters_terms_warnings_and_predictions(
    tiebreak: Tiebreak, tmp_path: Path, tiny_data_dir: Path
) -> None:
    done = tiebreak("plan", write_study(tmp_path), "--data-dir", tiny_data_dir, "--seeds", 3, "--epochs", 4)
    assert (done.code, done.err) == (0, "")
    said = one_line(done.out)
    for words in (
        "pneumoniamnist (96 train, 24 val, 24 test)",
        "protocol audited",
        "6 runs in all",
        "cnn-pool 3 4 224,650",
        "4 epochs, batches of 8",
        "warning: 3 seeds cannot decide",
        "warning: the file of pneumoniamnist",
        "predicted time:",
        "cnn-pool 3 224,650",
        "predicted memory:",
    ):
        assert words in said
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.toml"]


def test_a_quick_plan_needs_no_download(tiebreak: Tiebreak) -> None:
    done = tiebreak("plan", "pooling", "--quick", "--seeds", 2)
    assert done.code == 0
    assert "mnist5k (4,000 train, 500 val, 500 test)" in one_line(done.out)
    assert "18 runs in all" in one_line(done.out)


def test_a_run_ends_with_the_answer_and_the_path_of_the_report(finished: Finished) -> None:
    code, out, err = finished.first
    assert (code, err) == (0, "")
    printed = one_line(out)
    assert printed.index("training 4 runs") < printed.index("Undecided between pool and strided")
    assert out.rstrip().endswith(f"report: {finished.folder / 'report.html'}")
    assert (finished.folder / "report.html").is_file()


def test_a_loop_can_be_asked_for_and_is_not_timed(tmp_path: Path, tiebreak: Tiebreak, tiny_data_dir: Path) -> None:
    study, out = write_study(tmp_path), tmp_path / "out"
    done = tiebreak("run", study, "--data-dir", tiny_data_dir, "--out", out, "--workers", 1, "--strategy", "loop")
    assert (done.code, done.err) == (0, "")
    assert "timing" not in done.out
    assert "training of cnn-pool: one after the other" in (out / "report.md").read_text()


def test_a_second_run_trains_nothing_and_loads_no_torch(finished: Finished) -> None:
    again = process(*finished.again(), python=("-X", "importtime"))
    assert again.code == 0
    assert "runs done" not in again.out  # the progress of training
    assert one_line(finished.first.out).endswith(one_line(again.out))
    imported = {line.rpartition("|")[2].strip() for line in again.err.splitlines()}
    assert "tiebreak.api" in imported
    assert not [name for name in imported if name.split(".")[0] in ("torch", "sympy", "matplotlib")]
    assert "scipy.stats" not in imported


def test_a_run_goes_to_a_folder_named_after_the_study(
    finished: Finished, tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copytree(finished.folder, tmp_path / "runs" / "tiny")  # nothing is left to train
    monkeypatch.chdir(tmp_path)
    done = tiebreak("run", finished.study, "--data-dir", finished.data)
    assert done.code == 0
    assert done.out.rstrip().endswith("report: runs/tiny/report.html")


def test_ctrl_c_says_how_to_go_on_and_the_next_run_completes(
    tmp_path: Path, tiny_data_dir: Path, tiebreak: Tiebreak
) -> None:
    epochs = 25  # long enough to be interrupted on a busy machine
    study, out = write_study(tmp_path, seeds=1, budget={"epochs": epochs, "batch": 8}), tmp_path / "out"
    arguments = ["run", study, "--data-dir", tiny_data_dir, "--out", out, "--workers", 1]
    running = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not [*out.glob("checkpoints/*-2.safetensors")]:
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate()
    assert running.returncode == 130
    assert "the same command continues" in err
    assert "Traceback" not in err
    status = tiebreak("status", out)
    assert status.code == 0
    assert "0 of 2 runs done" in status.out
    assert "no finished seed" in one_line(tiebreak("verdict", out).out)

    done = process(*arguments)
    assert (done.code, done.err) == (0, "")
    assert "pool and strided" in one_line(done.out)
    trained = re.search(r"100 %: (\d+) of (\d+) epochs", done.out)
    assert trained is not None
    assert trained[1] == trained[2]
    assert int(trained[1]) < 2 * epochs  # what was checkpointed is not trained again
    assert tiebreak("check", out).code == 0
    assert "2 of 2 runs done" in tiebreak("status", out).out
