from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from support.own_tasks import REGRESSION, own_study
from support.small_study import small_study
from tiebreak.errors import TiebreakError
from tiebreak.plan.own_task_checks import load_own
from tiebreak.plan.planner import design_modules, make_plan

LOSS = '    return (network(batch["x"])[:, 0] - batch["y"]).square()\n'
METRICS = '    return {"error": (network(batch["x"])[:, 0] - batch["y"]).abs()}\n'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            LOSS,
            LOSS.replace(".square()", ".square().mean()"),
            r"loss: should be a tensor with a number for each example",
        ),
        (
            LOSS,
            '    apart = network(batch["x"])[:, 0] - batch["y"]\n    return (apart - apart.mean()).square()\n',
            r"loss of an example depends on the other examples",
        ),
        (
            LOSS,
            '    return (network(batch["x"])[:, 0] - batch["y"] + torch.randn(len(batch["y"]))).square()\n',
            r"draws random numbers .* in the loss or the metrics, at mine\.py:13, .* forward pass",
        ),
        (LOSS, "    torch.manual_seed(0)\n" + LOSS, r"seeds torch's generator"),
        (LOSS, '    batch["y"] -= 1\n' + LOSS, r"change batch\['y'\] in place"),
        (LOSS, '    network(batch["x"])\n    return batch["y"]\n', r"does not depend on what the network returns"),
        (LOSS, '    return (network(batch["x"])[:, 0].detach() - batch["y"]).square()\n', r"does not depend on"),
        (LOSS, '    return (network(batch["x"])[:, 3] - batch["y"]).square()\n', r"IndexError: .* at mine\.py:13"),
        (METRICS, METRICS.replace("error", "apart"), r"metrics: returns apart, but the study names error in its key"),
        (METRICS, "    return {}\n", r"metrics: returns none, but the study names error"),
        (METRICS, '    return network(batch["x"])\n', r"should return a dict of tensors"),
        (METRICS, METRICS.replace(".abs()", '.abs().median().expand(len(batch["y"]))'), r"error of an example depends"),
        ("def loss(", "def lost(", r"no function loss; the file of an own task defines load, loss and metrics"),
        ("def loss(", "loss = 3\n\n\ndef lost(", r"loss is no function"),
        ("return self.layers(x)", "return self.layers(x), x", r"should give one tensor .* torch\.cat"),
        ('    return {"x"', '    return {"x": x / 0, "y"', r"load: 'x': NaN or infinite in example 0"),
    ],
)
def test_a_task_that_could_not_be_trained_or_compared(tmp_path: Path, old: str, new: str, message: str) -> None:
    study = own_study(tmp_path)
    assert old in REGRESSION
    (tmp_path / "mine.py").write_text(REGRESSION.replace(old, new), "utf-8")
    with pytest.raises(TiebreakError, match=message) as caught:
        make_plan(study, None)
    assert "mine.py" in str(caught.value) or "design 'narrow'" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"metrics": {}}, r"metrics: required with task = 'own'"),
        ({"designs_from": None}, r"designs_from: required with task = 'own': .* load, loss and metrics"),
        ({"metrics": {"error": "less"}}, r"metrics\.error\s+Input should be 'max' or 'min'"),
        ({"metrics": {"error": "min", "loss": "max"}}, r"metrics\.loss: the loss is made smaller"),
        ({"metrics": {"error": "min", "val_x": "min"}}, r"metrics: 'val_x' is the name of something else"),
        ({"metrics": {"error": "min", "lr": "min"}}, r"metrics: 'lr' is the name of something else"),
        ({"metric": "eror"}, r"metric: unknown name 'eror'; .*error"),
        ({"data": "mnist5k"}, r"data: 'mnist5k': an own task reads its own data"),
        ({"fixed": {"label_smoothing": 0.1}}, r"label_smoothing: for the losses of Tiebreak's tasks"),
        ({"augment": {"flip": True}}, r"augment: changes images"),
        ({"options": {"window": 3}}, r"options: unknown name 'window'"),
        (
            {"arms": [{"name": "narrow", "design": "cnn-pool"}, {"name": "wide", "design": "wide"}]},
            r"unknown name 'cnn-pool'",
        ),
    ],
)
def test_keys_of_the_study(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        own_study(tmp_path, **keys)


def test_the_key_metrics_is_for_own_tasks() -> None:
    with pytest.raises(ValueError, match=r"metrics: only with task = 'own'"):
        small_study(metrics={"accuracy": "max"})


def test_the_data_is_loaded_once_until_code_or_files_change(tmp_path: Path) -> None:
    study = own_study(tmp_path, "segmentation")
    first = load_own(study, design_modules(study), None)
    assert load_own(study, design_modules(study), None) is first
    os.utime(tmp_path / "images.npz", ns=(1, 1))
    second = load_own(study, design_modules(study), None)
    assert second is not first
    assert second.checksum == first.checksum
    path = tmp_path / "mine.py"
    path.write_text(path.read_text("utf-8") + "\n# a remark\n", "utf-8")
    assert load_own(study, design_modules(study), None) is not second
