from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from support.small_study import loop_machine
from tiebreak import api, catalog
from tiebreak.drive.messages import Message, Note
from tiebreak.errors import TiebreakError
from tiebreak.layers.dropout import Dropout, swap_dropout
from tiebreak.models.design import Images
from tiebreak.plan.planner import make_plan
from tiebreak.study import design_file
from tiebreak.study.schema import Study

SHAPE = Images(channels=1, height=28, width=28, classes=2)
NET = """
from torch import nn

class Small(nn.Module):
    def __init__(self, shape, width=8):
        super().__init__()
        pixels = shape.channels * shape.height * shape.width
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(pixels, width), nn.BatchNorm1d(width), nn.ReLU(),
                                 nn.Dropout(0.4), nn.Linear(width, shape.classes))

    def forward(self, images):
        return self.net(images)

DESIGNS = {"small": Small}
"""


@pytest.fixture
def nets(tmp_path: Path) -> Path:
    path = tmp_path / "my_nets.py"
    path.write_text(NET, "utf-8")
    return path


def test_names_are_read_without_running_the_file(tmp_path: Path) -> None:
    path = tmp_path / "nets.py"
    path.write_text(f"{NET}\nraise SystemExit('it ran')\n", "utf-8")
    assert design_file.declared_names(path) == ["small"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "no DESIGNS"),
        ("DESIGNS = {}\n", "dict literal"),
        ("DESIGNS = dict(a=1)\n", "dict literal"),
        ("DESIGNS = {**other}\n", "dict literal"),
        ("DESIGNS = {1: int}\n", "dict literal"),
        ("def broken(:\n", ":1: not valid Python"),
    ],
)
def test_a_file_without_designs_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "nets.py"
    path.write_text(text, "utf-8")
    with pytest.raises(TiebreakError) as caught:
        design_file.declared_names(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "unknown" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match="No such file"):
        design_file.declared_names(tmp_path / "none.py")
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")
    with pytest.raises(TiebreakError, match="not UTF-8"):
        design_file.declared_names(tmp_path / "bytes.py")


def test_the_designs_of_a_file_are_built_with_our_dropout(nets: Path) -> None:
    design = catalog.find_design("small", str(nets))
    first, second = (design.network(SHAPE, {"width": 5}, 3) for _ in range(2))
    assert [type(layer) for layer in first.modules() if "Dropout" in type(layer).__name__] == [Dropout]
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert design.text_hash == design_file.file_hash(nets)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def small(shape): return 3", "should build an nn.Module, not int"),
        ("small = nn.Linear", "design 'small': TypeError: .*out_features"),
        ("def small(shape): return nn.Flatten()", "has no parameters to train"),
        ("def small(shape): return nn.Sequential(nn.Flatten(), nn.Linear(784, 7))", r"gave \(2, 7\) for 2 examples"),
        ("small = 'a name'", "should be an nn.Module class, not str"),
        ("raise ValueError('at import')\nsmall = 1", "ValueError: at import"),
        ("raise SystemExit(3)\nsmall = 1", "SystemExit: 3 .line 2"),
    ],
)
def test_a_network_that_is_none_of_the_family_is_refused(tmp_path: Path, body: str, message: str) -> None:
    path = tmp_path / "nets.py"
    path.write_text(f"from torch import nn\n{body}\nDESIGNS = {{'small': small}}\n", "utf-8")
    with pytest.raises(TiebreakError, match=message):
        catalog.find_design("small", str(path)).network(SHAPE, {}, 0)


def test_an_unknown_design_names_the_nearest(nets: Path) -> None:
    with pytest.raises(TiebreakError, match="did you mean 'small'"):
        catalog.find_design("smal", str(nets))
    with pytest.raises(TiebreakError, match="did you mean 'cnn-pool'"):
        catalog.find_design("cnn-pol")


def test_dropout_is_swapped_at_every_depth() -> None:
    network = nn.Sequential(nn.Dropout(0.1), nn.Sequential(nn.Sequential(nn.Dropout(0.2))), nn.Linear(2, 2))
    swap_dropout(network)
    rates = [float(layer.rate) for layer in network.modules() if isinstance(layer, Dropout)]
    assert rates == pytest.approx([0.1, 0.2])


def own_study(tiny_study: Callable[..., Study], nets: Path) -> Study:
    arms = [{"name": "mine", "design": "small", "build": {"width": 6}}, {"name": "pool", "design": "cnn-pool"}]
    return tiny_study(designs_from=str(nets), arms=arms, comparisons=[{"a": "mine", "b": "pool"}])


@pytest.mark.usefixtures("here")
def test_a_study_trains_them_and_says_that_they_are_code(
    tiny_study: Callable[..., Study], tiny_data_dir: Path, nets: Path, tmp_path: Path
) -> None:
    messages: list[Message] = []
    study = own_study(tiny_study, nets)
    result = api.run(
        study,
        tmp_path / "out",
        machine=loop_machine(tiny_data_dir),
        listen=messages.append,
    )
    assert [record.status for record in result.records.runs.values()] == ["done"] * 4
    assert any(isinstance(message, Note) and "code" in message.text for message in messages)
    assert result.plan.arm("mine").parameters == 784 * 6 + 6 + 12 + 6 * 2 + 2
    assert result.plan.arm("mine").flops == 2 * (784 * 6 + 6 * 2)


def test_a_network_that_ignores_its_input_is_a_warning(
    tiny_study: Callable[..., Study], tiny_data_dir: Path, nets: Path
) -> None:
    study = own_study(tiny_study, nets)
    assert not any("input" in warning for warning in make_plan(study, tiny_data_dir).warnings)
    nets.write_text(NET.replace("self.net(images)", "self.net(0 * images)"), "utf-8")
    warning = make_plan(study, tiny_data_dir).warnings[-1]
    assert warning.startswith("small: ")
    assert "input" in warning


def test_changing_the_file_changes_its_runs_and_no_others(
    tiny_study: Callable[..., Study], tiny_data_dir: Path, nets: Path
) -> None:
    study = own_study(tiny_study, nets)
    before = make_plan(study, tiny_data_dir)
    nets.write_text(f"{NET}# changed\n", "utf-8")
    assert make_plan(study, tiny_data_dir).runs == before.runs  # a comment changes nothing
    nets.write_text(NET.replace("nn.ReLU()", "nn.GELU()"), "utf-8")
    after = make_plan(study, tiny_data_dir)
    assert not set(before.arm("mine").runs.values()) & set(after.arm("mine").runs.values())
    assert before.arm("pool").runs == after.arm("pool").runs


def test_a_network_that_raises_when_it_is_planned_is_one_line_with_its_place(
    tiny_study: Callable[..., Study], tiny_data_dir: Path, nets: Path
) -> None:
    for old, new in (("return self.net(images)", "return {}['gone']"), ("super().__init__()", "{}['gone']")):
        nets.write_text(NET.replace(old, new), "utf-8")
        line = NET[: NET.index(old)].count("\n") + 1
        with pytest.raises(TiebreakError) as caught:
            make_plan(own_study(tiny_study, nets), tiny_data_dir)
        assert "design 'small': KeyError: 'gone'" in str(caught.value)
        assert f"{nets}:{line}" in str(caught.value)


def test_a_name_of_the_catalog_cannot_be_taken(tiny_study: Callable[..., Study], tmp_path: Path) -> None:
    path = tmp_path / "nets.py"
    path.write_text(NET.replace('"small"', '"cnn-pool"'), "utf-8")
    with pytest.raises(TiebreakError, match=r"designs_from: 'cnn-pool'.*catalog"):
        tiny_study(designs_from=str(path))


def test_the_file_is_found_beside_the_study_file(nets: Path) -> None:
    (nets.parent / "s.toml").write_text(
        'name = "s"\nquestion = "?"\ntask = "classify"\ndata = "mnist5k"\nmetric = "accuracy"\n'
        'margin = 0.1\nseeds = 2\ndesigns_from = "my_nets.py"\nbudget = { epochs = 1, batch = 8 }\n'
        '[[arms]]\nname = "a"\ndesign = "small"\n[[arms]]\nname = "b"\ndesign = "cnn-pool"\n'
        '[[comparisons]]\na = "a"\nb = "b"\n',
        "utf-8",
    )
    assert Study.load(str(nets.parent / "s.toml")).designs_from == str(nets)
