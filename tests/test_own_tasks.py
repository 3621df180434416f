"""A user's own task from the study file to the trained network."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import tiebreak as tb
from support import REPOSITORY
from support.cli_fixtures import Tiebreak
from support.own_tasks import REGRESSION, TASKS, own_study
from support.small_study import contents, loop_machine, workers_here
from support.twins import apart, silent
from tiebreak import api
from tiebreak.data.batches import epoch_batches
from tiebreak.drive.messages import Job
from tiebreak.errors import StopStudyError
from tiebreak.layers.global_generators import seeded
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Run
from tiebreak.streams import stream
from tiebreak.study.parsing import template_text
from tiebreak.study.schema import Study
from tiebreak.tasks.interface import count
from tiebreak.train.fused.engine import Fused
from tiebreak.train.loop import Loop
from tiebreak.train.run_group import RunGroup, make_group

pytestmark = pytest.mark.usefixtures("one_thread")
PAGE = REPOSITORY / "docs" / "own-task.md"


@pytest.fixture
def here() -> Iterator[None]:
    with workers_here():
        yield


def runs_of(study: Study, arm: str) -> list[Run]:
    plan = make_plan(study, None)
    return [plan.runs[identity] for identity in plan.arm(arm).runs.values()]


def group_of(study: Study, runs: list[Run]) -> RunGroup:
    """The runs in their initial state."""
    contents = tuple(run.model_dump(mode="json") for run in runs)
    return make_group(Job(runs=contents, folder="", data_dir=None, device="cpu", designs_from=study.designs_from))


@pytest.mark.parametrize("arm", ["narrow", "wide"])
@pytest.mark.parametrize("task", TASKS)
def test_fused_is_the_loop(tmp_path: Path, task: str, arm: str) -> None:
    study = own_study(tmp_path, task, precision="float64")
    runs = runs_of(study, arm)
    fused, alone = group_of(study, runs), [group_of(study, [run]) for run in runs]
    engine = Fused(fused.task, fused.network, fused.runs, fused.states)
    loops = [Loop(each.task, each.network, each.runs[0], each.states[0]) for each in alone]
    split = fused.split("train", {})
    for _ in range(2):
        losses = engine.train_epoch(split, silent)
        assert losses == pytest.approx([loop.train_epoch(split, silent)[0] for loop in loops], rel=1e-9)
    for one, other in zip(fused.states, alone, strict=True):
        assert apart(one.tensors(), other.states[0].tensors()) < 1e-9
    test = fused.split("test", {})
    for (scores, kept), loop in zip(engine.evaluate(test), loops, strict=True):
        wanted, outcomes = loop.evaluate(test)[0]
        assert scores == pytest.approx(wanted, rel=1e-5)
        assert {name: len(values) for name, values in kept.items()} == dict.fromkeys(outcomes, count(fused.task, test))


def test_a_loop_is_what_plain_torch_computes(tmp_path: Path) -> None:
    study = own_study(tmp_path, precision="float64", budget={"epochs": 2, "batch": 18})  # no batch is padded
    run = runs_of(study, "wide")[0]
    group = group_of(study, [run])
    loop, split = Loop(group.task, group.network, run, group.states[0]), group.split("train", {})
    module: dict[str, Any] = {}
    exec(compile(REGRESSION, "mine.py", "exec"), module)
    with seeded(stream(run.seed, "init")):
        plain = module["DESIGNS"]["wide"](group.task.shape(group.data)).double()
    optimiser = torch.optim.Adam(plain.parameters(), lr=0.01)
    for epoch in range(2):
        loop.train_epoch(split, silent)
        for indices in epoch_batches(run.seed, epoch, 72, 18).indices:
            optimiser.zero_grad()
            batch = {name: values[indices] for name, values in split.items()}
            module["loss"](plain, batch).mean().backward()
            optimiser.step()
    wanted = {name: value.detach() for name, value in plain.named_parameters()}
    assert apart(group.states[0].params, wanted) < 1e-10


def test_a_study_is_run_resumed_and_its_network_loaded(tmp_path: Path, here: None) -> None:
    study, out = own_study(tmp_path / "mine"), tmp_path / "out"
    result = tb.run(study, out, machine=loop_machine(), listen=lambda message: None)
    assert result.verdict.finished == 4
    assert "error" in result.report.read_text("utf-8")
    before = contents(out)
    shutil.rmtree(tmp_path / "mine")  # the folder has a copy of the file
    again = tb.run(Study.load(str(out / "study.toml")), out, machine=loop_machine(), listen=lambda message: None)
    assert again.verdict.answer == result.verdict.answer
    assert contents(out) == before
    network = tb.load_network(out, arm="wide", seed=1)
    assert not network.training
    (run,) = (run for run in result.plan.runs.values() if (run.design, run.seed) == ("wide", 1))
    test = group_of(Study.load(str(out / "study.toml")), [run]).split("test", {})
    with torch.no_grad():
        error = (network(test["x"])[:, 0] - test["y"]).abs().mean()
    (row,) = (row for row in result.rows if (row["arm"], row["seed"]) == ("wide", 1))
    assert row["error"] == pytest.approx(float(error), rel=1e-5)
    assert api.check(out).problems == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (".square()", ".abs()", "0 of 4 runs are kept; the code of your task changed: 4 runs trained again"),
        ("shape, width=16", "shape, width=8", "2 of 4 runs are kept; the code of wide changed: 2 runs trained again"),
        ("manual_seed(0)", "manual_seed(7)", "0 of 4 runs are kept; the code of your task changed and the data"),
    ],
)
def test_only_what_the_changed_code_decides_is_trained_again(
    tmp_path: Path, here: None, old: str, new: str, said: str
) -> None:
    study, out = own_study(tmp_path / "mine"), tmp_path / "out"
    heard: list[str] = []
    tb.run(study, out, machine=loop_machine(), listen=lambda message: None)
    assert REGRESSION.count(old) == 1
    (tmp_path / "mine" / "mine.py").write_text(REGRESSION.replace(old, new), "utf-8")
    tb.run(study, out, machine=loop_machine(), listen=lambda message: heard.append(getattr(message, "text", "")))
    assert any(said in line for line in heard), heard
    assert api.check(out).problems == []


def test_functions_may_be_imported_from_a_module_beside_the_file(tmp_path: Path, here: None) -> None:
    study, out = own_study(tmp_path / "mine"), tmp_path / "out"
    functions, _, networks = REGRESSION.partition("class Narrow")
    (tmp_path / "mine" / "weather.py").write_text(functions, "utf-8")
    imports = "from torch import nn\nfrom weather import load, loss, metrics\n\n\nclass Narrow"
    (tmp_path / "mine" / "mine.py").write_text(imports + networks, "utf-8")
    tb.run(study, out, machine=loop_machine(), listen=lambda message: None)
    before = set(make_plan(study, None).runs)
    (tmp_path / "mine" / "weather.py").write_text(functions.replace(".square()", ".abs()"), "utf-8")
    assert not before & set(make_plan(study, None).runs)
    assert (out / "weather.py").exists()


def test_data_that_differs_from_call_to_call_stops_the_study(tmp_path: Path) -> None:
    study = own_study(tmp_path)
    text = REGRESSION.replace("torch.Generator().manual_seed(0)", "torch.Generator().manual_seed(hash(object()))")
    (tmp_path / "mine.py").write_text(text, "utf-8")
    runs = runs_of(study, "wide")
    with pytest.raises(StopStudyError, match=r"mine\.py: load: returned other data .* seed what it draws"):
        group_of(study, runs)


def test_the_template_runs_and_is_the_example_of_the_guide(
    tmp_path: Path, tiebreak: Tiebreak, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tiebreak("new", "friedman", "--own-task")
    blocks = re.findall(r"^```(?:python|toml)\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    for name, block in zip(("friedman.py", "friedman.toml"), blocks, strict=False):
        assert (tmp_path / name).read_text("utf-8") == block
    assert template_text("template_own.txt").replace("NAME", "friedman") == blocks[0]
    quickly = ("--seeds", "1", "--epochs", "1", "--grid", "lr=0.01", "--strategy", "loop")
    with workers_here():
        done = tiebreak("run", "friedman.toml", *quickly)
    assert "hidden vs linear" in done.out


@pytest.mark.parametrize(("number", "task", "metric"), [(1, "segmentation", "iou"), (2, "autoencoder", "error")])
def test_the_other_examples_of_the_guide_run(tmp_path: Path, number: int, task: str, metric: str) -> None:
    """Their functions, with data and networks of ours."""
    example = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)[number]
    functions = example.partition("class Vae")[0]
    study = own_study(tmp_path, task, metrics={metric: "max"}, metric=metric)
    text = TASKS[task]
    if task == "autoencoder":  # of one input, and three hidden numbers
        functions += text[text.index("def metrics") : text.index("class Certain")].replace(', batch["kind"]', "")
        text = text.replace(", kind):", "):").replace("torch.cat([x, self.kinds(kind)], 1)", "x")
        text = text.replace("nn.Linear(8, 4), nn.Linear(2, 6)", "nn.Linear(6, 6), nn.Linear(3, 6)")
        functions = functions.replace("[12, 3, 3]", "[6, 3, 3]")
    networks = text[text.index("class ") :]
    load = "" if "def load" in functions else text[text.index("def load") : text.index("def loss")]
    imports = "import numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
    (tmp_path / "mine.py").write_text(f"{imports}{load}{functions}\n\n{networks}", "utf-8")
    runs = runs_of(study, "wide")
    group = group_of(study, runs)
    engine, split = Fused(group.task, group.network, group.runs, group.states), group.split("train", {})
    assert all(map(math.isfinite, engine.train_epoch(split, silent)))
    assert {"loss", metric} == set(engine.evaluate(group.split("test", {}))[0][0])


def test_a_loss_that_cannot_be_fused_is_named_in_the_plan(tmp_path: Path) -> None:
    study = own_study(tmp_path, "regression")
    assert [arm.cannot_fuse for arm in make_plan(study, None).arms] == ["", ""]
    code = Path(str(study.designs_from))
    wrong = "found = network(batch['x'])[:, 0]\n    found = found if found.mean() > 9 else found + 0\n    "
    code.write_text(code.read_text().replace('return (network(batch["x"])[:, 0] -', f"{wrong}return (found -", 1))
    reasons = [arm.cannot_fuse for arm in make_plan(study, None).arms]
    line = code.read_text().splitlines().index("    found = found if found.mean() > 9 else found + 0") + 1
    assert all(re.match(rf"it decides by values of a tensor .*, at {code.name}:{line}$", each) for each in reasons)
