"""The command line: `main` called as the console script calls it, and as a process where that is what matters."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from shutil import copytree
from typing import Any, NamedTuple

import pytest
import tomli_w
import torch

from support import bad_studies, tiny
from tiebreak.cli import app, data_commands
from tiebreak.study.schema import Study

COMMANDS = [item.callback for app in (app.app, data_commands.data_app) for item in app.registered_commands]
MNIST5K = "4,000 train, 500 val, 500 test"


class Done(NamedTuple):
    code: int
    out: str
    err: str


Tiebreak = Callable[..., Done]


@pytest.fixture
def tiebreak(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tiebreak:
    """The command line in this process; it ends with SystemExit as the console script does."""

    def call(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["tiebreak", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            app.main()
        printed = capsys.readouterr()
        return Done(int(ended.value.code or 0), printed.out, printed.err)

    return call


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No data of this machine's user, and a terminal of a fixed width."""
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path_factory.getbasetemp() / "no-cache"))
    monkeypatch.delenv("TIEBREAK_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "100")


def process(*arguments: object, python: tuple[str, ...] = ()) -> Done:
    command = [sys.executable, *python, "-m", "tiebreak", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def write_study(folder: Path, **changes: Any) -> Path:
    content = tiny.content(**changes)
    path = folder / f"{content['name']}.toml"
    path.write_text(tomli_w.dumps(content), "utf-8")
    return path


def one_line(text: str) -> str:
    """Text as it was before the terminal broke its lines."""
    return " ".join(text.split())


class Finished(NamedTuple):
    study: Path
    data: Path
    folder: Path
    first: Done

    def again(self) -> tuple[object, ...]:
        return ("run", self.study, "--data-dir", self.data, "--out", self.folder, "--workers", 1)


@pytest.fixture(scope="module")
def finished(tiny_data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The small study, run by `tiebreak run` in a process of its own."""
    folder = tmp_path_factory.mktemp("cli")
    made = Finished(write_study(folder), tiny_data_dir, folder / "out", Done(0, "", ""))
    return made._replace(first=process(*made.again()))


@pytest.fixture
def folder(finished: Finished, tmp_path: Path) -> Path:
    """The finished results, for a test to change."""
    return copytree(finished.folder, tmp_path / "out")


# help and imports


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_help_of_every_command_says_what_it_does(command: Callable[..., None], tiebreak: Tiebreak) -> None:
    done = tiebreak(*command.__name__.split("_"), "--help")
    assert (done.code, done.err) == (0, "")
    assert command.__doc__ is not None
    said = one_line(re.sub(r"[│╭╮╰╯─]", " ", done.out)).replace("`", "")
    assert one_line(command.__doc__.split("\n")[0]).replace("`", "") in said
    assert "--help" in said


def test_help_of_all_names_every_command(tiebreak: Tiebreak) -> None:
    said = tiebreak("--help").out
    commands = [getattr(item.callback, "__name__", "") for item in app.app.registered_commands]
    for name in (*commands, "data"):
        assert re.search(rf"│ {name}\s", said)
    assert "tiebreak run pooling --quick" in said


@pytest.mark.parametrize("arguments", [[], ["data"]], ids=["none", "data"])
def test_no_command_shows_the_help(arguments: list[str], tiebreak: Tiebreak) -> None:
    done = tiebreak(*arguments)
    assert "Usage" in done.out + done.err
    assert "tiebreak: " not in done.err


def test_the_version_is_that_of_the_package(tiebreak: Tiebreak) -> None:
    assert tiebreak("--version") == (0, f"tiebreak {metadata.version('tiebreak')}\n", "")


@pytest.mark.parametrize("arguments", [["--help"], ["studies"], ["data", "list"]], ids=" ".join)
def test_light_commands_import_nothing_heavy(arguments: list[str]) -> None:
    code = (
        f"import sys; sys.argv = ['tiebreak', *{arguments}]\n"
        "from tiebreak.cli.app import main\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code\n"
        "print([name for name in ('torch', 'scipy.stats', 'matplotlib', 'sympy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# bad input


@bad_studies.cases(bad_studies.UNKNOWN_KEYS, bad_studies.WRONG_TYPES, bad_studies.BROKEN_RULES)
def test_a_bad_study_file_is_one_line_code_2_and_nothing_written(
    content: dict[str, Any], line: str, tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bad.toml"
    path.write_text(tomli_w.dumps(content), "utf-8")
    done = tiebreak("run", "bad.toml")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"tiebreak: bad.toml: {line}")
    assert done.err.count("\n") == 1
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("command", ["run", "plan"])
@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("bad.toml", b"name = ", "tiebreak: bad.toml: not valid TOML: "),
        ("bad.toml", b"\xff", "tiebreak: bad.toml: line 1: not UTF-8 text (byte 0)"),
        ("gone.toml", None, "tiebreak: gone.toml: No such file or directory"),
        ("folder.toml", "folder", "tiebreak: folder.toml: Is a directory"),
        ("poling", None, "tiebreak: no study 'poling'; did you mean 'pooling'?"),
    ],
    ids=["not TOML", "not UTF-8", "missing", "folder", "unknown"],
)
def test_what_is_no_study_file_is_one_line_and_code_2(
    command: str,
    name: str,
    content: bytes | str | None,
    line: str,
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
    assert done.err.startswith(line)
    assert done.err.count("\n") == 1
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--seeds", "0"], "tiebreak: study tiny: seeds: should be greater than or equal to 1, not 0"),
        (["--seeds", "-1"], "tiebreak: study tiny: seeds: should be greater than or equal to 1, not -1"),
        (["--epochs", "0"], "tiebreak: study tiny: budget.epochs: should be greater than or equal to 1, not 0"),
        (["--data", "octmnits"], "tiebreak: study tiny: data: unknown name 'octmnits'; did you mean 'octmnist'?"),
        (["--data", "mnist"], "tiebreak: mnist: mnist.npz not found in "),
        (["--data-dir", "nowhere"], "tiebreak: --data-dir nowhere: no such folder"),
    ],
    ids=["no seeds", "negative seeds", "no epochs", "unknown data", "missing data", "missing folder"],
)
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_bad_option_is_one_line_and_code_2(
    command: str, options: list[str], line: str, tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = tiebreak(command, write_study(tmp_path), *options)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(line)
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["rnu"],
        ["run"],
        ["run", "pooling", "--workers", "0"],
        ["run", "pooling", "--device", "tpu"],
        ["run", "pooling", "--sedes", "1"],
        ["plan", "pooling", "--seeds", "many"],
        ["run", "pooling", "--strategy", "fast"],
        ["run", "pooling", "--precision", "fp8"],
        ["run", "pooling", "kuzushiji"],
    ],
    ids=" ".join,
)
def test_a_command_that_cannot_be_understood_is_one_line_and_code_2(arguments: list[str], tiebreak: Tiebreak) -> None:
    done = tiebreak(*arguments)
    assert (done.code, done.out) == (2, "")
    assert re.fullmatch(r"tiebreak: [^\n]+; see tiebreak( run| plan)? --help\n", done.err)


def test_reduced_precision_on_a_cpu_is_one_line_and_nothing_is_made(tiebreak: Tiebreak, tmp_path: Path) -> None:
    done = tiebreak("run", "pooling", "--quick", "--precision", "tf32", "--out", tmp_path / "out")
    assert done.code == 2
    assert done.err == "tiebreak: precision tf32 is a GPU's (--device cuda); a CPU computes in float32\n"
    assert not (tmp_path / "out").exists()


def test_a_gpu_that_is_not_there_is_one_line_and_nothing_is_made(tiebreak: Tiebreak, tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    done = tiebreak("run", "pooling", "--quick", "--device", "cuda", "--out", tmp_path / "out")
    assert done.code == 2
    assert done.err.startswith("tiebreak: --device cuda: torch ")
    assert done.err.endswith("sees no GPU here; use --device cpu\n")
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
        assert done.err.endswith("give a folder that can be written with --out\n")
        assert done.err.count("\n") == 1
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_that_may_not_be_written_is_one_line(tiebreak: Tiebreak, tmp_path: Path, tiny_data_dir: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    if os.access(locked, os.W_OK):
        pytest.skip("this user may write everywhere")
    done = tiebreak("run", write_study(tmp_path), "--data-dir", tiny_data_dir, "--out", locked / "out")
    assert done.code == 2
    assert done.err.endswith("Permission denied; give a folder that can be written with --out\n")


def test_the_folder_of_another_study_is_refused(
    tiebreak: Tiebreak, folder: Path, tmp_path: Path, tiny_data_dir: Path
) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    done = tiebreak("run", write_study(tmp_path, name="other"), "--data-dir", tiny_data_dir, "--out", folder)
    assert done.code == 2
    assert done.err == f"tiebreak: {folder}: holds the study 'tiny', not 'other'; give another --out\n"
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("command", ["verdict", "report", "status", "check"])
def test_a_folder_without_results_is_one_line(command: str, tiebreak: Tiebreak, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "gone"):
        done = tiebreak(command, place)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"tiebreak: {place}: no ")
        assert done.err.count("\n") == 1


# studies and plans


def test_studies_are_listed_with_question_data_and_time(tiebreak: Tiebreak) -> None:
    said, study = one_line(tiebreak("studies").out), Study.load("pooling")
    assert f"pooling {study.question} data octmnist; {study.about.time}" in said


def test_a_plan_shows_runs_parameters_terms_warnings_and_predictions(
    tiebreak: Tiebreak, tmp_path: Path, tiny_data_dir: Path
) -> None:
    done = tiebreak("plan", write_study(tmp_path), "--data-dir", tiny_data_dir, "--seeds", 3, "--epochs", 4)
    assert (done.code, done.err) == (0, "")
    said = one_line(done.out)
    for words in (
        "data pneumoniamnist (96 train, 24 val, 24 test), protocol audited",
        "1 setting x 3 seeds for each arm, 6 runs in all",
        "cnn-pool 3 4 224,650",
        "equal: budget: 4 epochs, batches of 8",
        "warning: 3 seeds cannot decide 1 comparison: at least 6 are needed (--seeds)",
        "warning: the file of pneumoniamnist is not the published one",
        "predicted training time:",
        "cohort runs parameters at once memory cnn-pool 3 224,650 3",
        "predicted memory:",
    ):
        assert words in said
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.toml"]


def test_a_quick_plan_needs_no_download(tiebreak: Tiebreak) -> None:
    done = tiebreak("plan", "pooling", "--quick", "--seeds", 2)
    assert done.code == 0
    assert f"data mnist5k ({MNIST5K}), protocol audited" in one_line(done.out)
    assert "3 settings x 2 seeds for each arm, 18 runs in all" in done.out


# run, and what can be asked of its folder


def test_a_run_ends_with_the_answer_and_the_path_of_the_report(finished: Finished) -> None:
    code, out, err = finished.first
    assert (code, err) == (0, "")
    said = one_line(out)
    told = (
        "timing cnn-pool, cnn-strided: fused, and one run after the other",
        "cnn-pool: 2 runs ",
        "cnn-strided: 2 runs ",
    )
    places = [said.index(text) for text in (*told, "training 4 runs, ")]
    assert places == sorted(places)
    assert "100 %: 4 of 4 epochs, 4 of 4 runs done" in out
    assert "Undecided between pool and strided" in one_line(out)
    assert out.rstrip().endswith(f"report: {finished.folder / 'report.html'}")
    assert (finished.folder / "report.html").is_file()


def test_a_loop_can_be_asked_for_and_is_not_timed(tmp_path: Path, tiebreak: Tiebreak, tiny_data_dir: Path) -> None:
    study, out = write_study(tmp_path), tmp_path / "out"
    done = tiebreak("run", study, "--data-dir", tiny_data_dir, "--out", out, "--workers", 1, "--strategy", "loop")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("training 4 runs, 1 at a time\n")
    assert "training of cnn-pool: one after the other, " in (out / "report.md").read_text()


def test_a_second_run_trains_nothing_and_loads_no_torch(finished: Finished) -> None:
    again = process(*finished.again(), python=("-X", "importtime"))
    assert again.code == 0
    assert "training" not in again.out
    assert again.out.startswith("Does max pooling")
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


def test_a_verdict_is_shown_in_words(finished: Finished, tiebreak: Tiebreak) -> None:
    done = tiebreak("verdict", finished.folder)
    assert (done.code, done.err) == (0, "")
    assert "Undecided between pool and strided" in one_line(done.out)
    assert "report.html" in done.out


def test_a_verdict_for_programs_is_the_stored_file(finished: Finished, tiebreak: Tiebreak) -> None:
    done = tiebreak("verdict", finished.folder, "--json")
    assert done.code == 0
    assert json.loads(done.out) == json.loads((finished.folder / "verdict.json").read_text())
    assert json.loads(done.out)["study"] == "tiny"


def test_the_status_counts_runs_by_arm_and_setting(finished: Finished, tiebreak: Tiebreak) -> None:
    done = tiebreak("status", finished.folder)
    assert (done.code, done.err) == (0, "")
    assert "pool default 2 of 2 - - - 2 of 2" in one_line(done.out)
    assert "4 of 4 runs done" in done.out
    assert re.search(r"cnn-strided: (fused, 2 runs at once|one after the other), [\d.]+ ms a step", one_line(done.out))


def test_a_report_is_written_anew(folder: Path, tiebreak: Tiebreak) -> None:
    for name in ("report.html", "report.md", "verdict.json"):
        (folder / name).unlink()
    done = tiebreak("report", folder)
    assert (done.code, done.out) == (0, f"{folder / 'report.html'}\n")
    assert "Undecided between pool and strided" in (folder / "report.md").read_text()
    assert (folder / "verdict.json").is_file()


def test_a_whole_folder_passes_the_check(finished: Finished, tiebreak: Tiebreak) -> None:
    done = tiebreak("check", finished.folder)
    assert (done.code, done.err) == (0, "")
    compared = re.fullmatch(r".*: (\d+) hashes compared, all as they were written\n", done.out)
    assert compared is not None
    assert int(compared[1]) >= 20  # 4 identities; 4 epochs, 4 runs, 4 evaluations; 4 checkpoints


def test_a_damaged_checkpoint_fails_the_check(folder: Path, tiebreak: Tiebreak) -> None:
    path = min((folder / "checkpoints").iterdir())
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    done = tiebreak("check", folder)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"tiebreak: {path}: damaged, its sha256 is not the recorded one\n"


def test_a_missing_checkpoint_fails_the_check(folder: Path, tiebreak: Tiebreak) -> None:
    path = min((folder / "checkpoints").iterdir())
    path.unlink()
    assert tiebreak("check", folder) == (2, "", f"tiebreak: {path}: missing\n")


def test_a_changed_plan_fails_the_check_and_is_not_believed(folder: Path, tiebreak: Tiebreak) -> None:
    path = folder / "plan.json"
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 9', 1))
    for command in ("check", "verdict", "status", "report"):
        done = tiebreak(command, folder)
        assert done.code == 2
        assert "plan.json: run " in done.err
        assert "was changed by hand" in done.err


def test_a_store_that_is_no_database_is_one_line(folder: Path, tiebreak: Tiebreak) -> None:
    for path in folder.glob("records.sqlite*"):
        path.write_bytes(b"not a database at all" * 100)
    for command in ("check", "verdict", "status", "report"):
        done = tiebreak(command, folder)
        assert done.code == 2
        assert "records.sqlite" in done.err
        assert done.err.count("\n") == 1


def test_ctrl_c_says_how_to_go_on_and_the_next_run_completes(
    tmp_path: Path, tiny_data_dir: Path, tiebreak: Tiebreak
) -> None:
    study = write_study(tmp_path, seeds=1, budget={"epochs": 12, "batch": 8})
    out = tmp_path / "out"
    arguments = ["run", study, "--data-dir", tiny_data_dir, "--out", out, "--workers", 1]
    running = subprocess.Popen(
        [sys.executable, "-m", "tiebreak", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not [*out.glob("checkpoints/*-2.safetensors")]:
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert err == "\ntiebreak: stopped; the same command continues where it was\n"
    status = tiebreak("status", out)
    assert status.code == 0
    assert "0 of 2 runs done" in status.out
    assert "share no finished seed yet" in one_line(tiebreak("verdict", out).out)

    done = process(*arguments)
    assert (done.code, done.err) == (0, "")
    assert "pool and strided" in one_line(done.out)
    trained = re.search(r"100 %: (\d+) of (\d+) epochs", done.out)
    assert trained is not None
    assert trained[1] == trained[2]
    assert int(trained[1]) <= 24 - 1  # what was checkpointed is not trained again
    assert tiebreak("check", out).code == 0
    assert "2 of 2 runs done" in tiebreak("status", out).out


# compare


def write_scores(path: Path, *, seeds: int = 8) -> Path:
    pool = [f"pool,{seed},{0.9 + 0.001 * (seed % 3):.3f}" for seed in range(seeds)]
    strided = [f"strided,{seed},{0.8 + 0.001 * (seed % 2):.3f}" for seed in range(seeds)]
    path.write_text("\n".join(["arm,seed,score", *pool, *strided]))
    return path


def test_given_scores_get_a_verdict_without_training(tiebreak: Tiebreak, tmp_path: Path) -> None:
    done = tiebreak("compare", write_scores(tmp_path / "scores.csv"))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("pool vs strided: pool is better\n  difference +0.1004, 95 % interval +0.09")


def test_a_smaller_score_can_be_the_better_one(tiebreak: Tiebreak, tmp_path: Path) -> None:
    path = write_scores(tmp_path / "scores.csv")
    assert tiebreak("compare", path, "--goal", "min").out.startswith("pool vs strided: strided is better")
    (row,) = json.loads(tiebreak("compare", path, "--goal", "min", "--json").out)
    assert row["verdict"] == "b"
    assert row["difference"] == pytest.approx(0.1, abs=1e-3)


def test_the_margin_decides_what_is_the_same(tiebreak: Tiebreak, tmp_path: Path) -> None:
    path = write_scores(tmp_path / "scores.csv")
    assert tiebreak("compare", path, "--margin", "0.5").out.startswith("pool vs strided: the same within ±0.5")


@pytest.mark.parametrize("margin", ["0", "-1", "nan", "inf"])
def test_a_margin_that_is_none_is_one_line(margin: str, tiebreak: Tiebreak, tmp_path: Path) -> None:
    done = tiebreak("compare", write_scores(tmp_path / "scores.csv"), "--margin", margin)
    assert (done.code, done.out) == (2, "")
    assert "margin" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "No such file or directory"),
        ("", "the file is empty; it should have the columns arm, seed, score"),
        ("arm;seed;score\na;1;2", "line 1: the columns are not separated by commas"),
        ("arm,seed,scor\na,1,2", "line 1: no column 'score'"),
        ("arm,seed,score\na,1,good", "line 2: the score 'good' is not a number"),
        ("arm,seed,score\na,1,0.5", "only one arm, 'a'; a comparison takes two"),
        ("arm,seed,score\na,1,nan\nb,1,1", "line 2: the score 'nan' cannot be compared"),
    ],
)
def test_scores_that_cannot_be_read_are_one_line(
    content: str | None, line: str, tiebreak: Tiebreak, tmp_path: Path
) -> None:
    path = tmp_path / "scores.csv"
    if content is not None:
        path.write_text(content)
    done = tiebreak("compare", path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"tiebreak: {path}")
    assert line in done.err
    assert done.err.count("\n") == 1


# new


def test_a_new_study_is_a_commented_file_that_plans(
    tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = tiebreak("new", "my-study")
    assert (done.code, done.out) == (0, "my-study.toml: edit it, then `tiebreak plan my-study.toml`\n")
    text = Path("my-study.toml").read_text()
    assert "NAME" not in text
    assert text.startswith("# A study: ")
    assert Study.load("my-study.toml").name == "my-study"
    assert tiebreak("plan", "my-study.toml", "--quick").code == 0


def test_a_new_study_overwrites_nothing(tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text("precious")
    assert tiebreak("new", "mine") == (2, "", "tiebreak: mine.toml: is there already; give another name\n")
    assert Path("mine.toml").read_text() == "precious"


@pytest.mark.parametrize("name", ["my study", "../up", 'a"\nseeds = 3', "", "x" * 61])
def test_a_name_that_is_none_is_one_line_and_nothing_written(
    name: str, tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    done = tiebreak("new", name)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("tiebreak: new study: name: ")
    assert done.err.count("\n") == 1
    assert [*tmp_path.rglob("*")] == [tmp_path / "here"]


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m tiebreak data list | true"  # the reader is gone before anything is written
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
