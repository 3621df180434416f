from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from support.cli_fixtures import Tiebreak
from support.damage import graph_study, run_here
from support.small_study import loop_machine, workers_here
from tiebreak import api
from tiebreak.cli.app import app
from tiebreak.cli.use import use
from tiebreak.data.images.image_data import load as load_images
from tiebreak.errors import TiebreakError
from tiebreak.results.tally import Tally
from tiebreak.study.schema import Study
from tiebreak.trained import best_arm, chosen_run


@pytest.fixture(scope="module")
def folder(tiny_study: Callable[..., Study], tiny_data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("use") / "out"
    study = tiny_study(budget={"epochs": 3, "batch": 8})
    with workers_here():
        api.run(study, out, machine=loop_machine(tiny_data_dir), listen=lambda message: None)
    return out


@pytest.fixture
def picture(tiny_data_dir: Path, tmp_path: Path) -> Path:
    data = load_images("pneumoniamnist", tiny_data_dir)
    Image.fromarray(data.images["test"][0]).save(tmp_path / "one.png")
    return tmp_path / "one.png"


def test_probabilities_are_those_of_the_run(folder: Path, picture: Path) -> None:
    used = use(folder, str(picture))
    shares = [answer.probability or 0.0 for answer in used.reply.answers]
    assert sum(shares) == pytest.approx(1, abs=1e-5)
    assert {answer.text for answer in used.reply.answers} == {"normal", "pneumonia"}
    assert shares == sorted(shares, reverse=True)
    result = api.open_result(folder)
    stored = result.records.finals[used.run.identity]["default"].outcomes["prediction"][0]
    assert used.reply.answers[0].text == ("normal", "pneumonia")[int(stored)], "the first test image, as it was tested"
    assert used.reply.note == ""


def test_a_run_in_double_precision_answers(
    tiny_study: Callable[..., Study], tiny_data_dir: Path, tmp_path: Path, picture: Path
) -> None:
    with workers_here():
        study = tiny_study(precision="float64", seeds=1)
        api.run(study, tmp_path / "out", machine=loop_machine(tiny_data_dir), listen=lambda message: None)
    assert use(tmp_path / "out", str(picture)).reply.answers


def test_the_best_run_is_chosen_on_validation(folder: Path, picture: Path) -> None:
    used = use(folder, str(picture))
    result = api.open_result(folder)

    def score(identity: str) -> float:
        run = result.plan.runs[identity]
        return result.records.epochs[run.trajectory][run.epochs].metrics["val_accuracy"]

    own = result.plan.arm(used.arm).runs.values()
    assert score(used.run.identity) == max(score(identity) for identity in own)


def test_an_arm_and_a_seed_can_be_named(folder: Path, picture: Path) -> None:
    used = use(folder, str(picture), arm="strided", seed=1)
    assert (used.arm, used.run.design, used.run.seed) == ("strided", "cnn-strided", 1)
    with pytest.raises(TiebreakError, match=r"'stridid'.*'strided'"):
        use(folder, str(picture), arm="stridid")
    with pytest.raises(TiebreakError, match=r"seed 9.*\[0, 1\]"):
        use(folder, str(picture), arm="strided", seed=9)


def test_another_size_and_colour_are_converted_and_said(folder: Path, tmp_path: Path) -> None:
    Image.fromarray(np.full((40, 30, 3), 90, np.uint8)).save(tmp_path / "colour.jpg")
    note = use(folder, str(tmp_path / "colour.jpg")).reply.note
    assert all(part in note for part in ("30x40", "28x28", "grey"))


def test_the_data_set_is_not_needed(folder: Path, picture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIEBREAK_DATA", "/nonexistent")
    assert use(folder, str(picture)).reply.answers


@pytest.mark.parametrize("name", ["missing.png", "text.png"])
def test_what_is_no_picture_is_one_line(folder: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "text.png").write_text("not a picture", "utf-8")
    shown = CliRunner().invoke(app, ["use", str(folder), str(tmp_path / name)])
    assert isinstance(shown.exception, TiebreakError)
    assert str(tmp_path / name) in str(shown.exception)


def test_a_damaged_checkpoint_is_named(folder: Path, picture: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    for path in (copy / "checkpoints").iterdir():
        content = bytearray(path.read_bytes())
        content[-5] ^= 1
        path.write_bytes(content)
    with pytest.raises(TiebreakError, match="damaged"):
        use(copy, str(picture))


def test_the_command_shows_classes_and_who_was_asked(folder: Path, picture: Path) -> None:
    shown = CliRunner().invoke(app, ["use", str(folder), str(picture), "--arm", "pool"])
    assert shown.exit_code == 0, shown.output
    assert "normal" in shown.output
    assert "%" in shown.output
    assert "pool (cnn-pool" in shown.output


def test_a_run_whose_validation_score_is_not_finite_is_never_the_best(folder: Path) -> None:
    result = api.open_result(folder)
    arm = result.study.arms[0].name
    broken = result.plan.runs[result.plan.arm(arm).run({}, 0)]
    epochs = {name: dict(each) for name, each in result.records.epochs.items()}
    last = epochs[broken.trajectory][broken.epochs]
    metrics = {**last.metrics, "val_accuracy": float("inf")}
    epochs[broken.trajectory][broken.epochs] = replace(last, metrics=metrics)
    tally = Tally(result.study, result.plan, replace(result.records, epochs=epochs))
    assert chosen_run(result, tally, arm, None).seed == 1
    assert chosen_run(result, tally, arm, 0).seed == 0, "it can be asked for"
    assert best_arm(result, tally) in {each.name for each in result.study.arms}


@pytest.mark.usefixtures("here")
def test_a_folder_whose_designs_are_code_says_so_once(tiebreak: Tiebreak, tmp_path: Path) -> None:
    run_here(graph_study(tmp_path / "mine.py"), tmp_path / "out")
    done = tiebreak("use", tmp_path / "out", "3", "--arm", "gcn")
    assert done.code == 0
    assert "designs.py" in done.err
    assert done.err.count("code") == 1
    assert "code" not in done.out
    assert tiebreak("use", tmp_path / "out", "3", "--arm", "mlp").err == "", "a design of the catalog runs no file"
