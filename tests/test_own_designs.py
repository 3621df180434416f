"""A user's design file in a results folder: what is copied, what a mistake leaves behind. Nothing is trained."""

from __future__ import annotations

import importlib.util
import py_compile
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support import bad_studies
from tiebreak import api, catalog
from tiebreak.drive.machine import Machine
from tiebreak.errors import TiebreakError
from tiebreak.models.design import Images
from tiebreak.results.folder import opened, read_plan
from tiebreak.results.seal import seal
from tiebreak.results.store import STORE_FILE
from tiebreak.study.schema import Study

Make = Callable[..., Study]
SHAPE = Images(channels=1, height=28, width=28, classes=10)
NETS = """
import torch
from torch import nn
import sizes
from blocks.linear import layer


class Net(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.out = layer(shape.height * shape.width * shape.channels, shape.classes * sizes.ONE)

    def forward(self, images):
        return self.out(images.flatten(1))


DESIGNS = {"net": Net}
"""
HELPERS = {
    "sizes.py": "ONE = 1\n",
    "blocks/__init__.py": "",
    "blocks/linear.py": "from .plain import linear\n\n\ndef layer(a, b):\n    return linear(a, b)\n",
    "blocks/plain.py": "from torch import nn\n\n\ndef linear(a, b):\n    return nn.Linear(a, b)\n",
}


@pytest.fixture
def study(tiny_study: Make, tmp_path: Path) -> Study:
    """A study of a design in a file with helper modules beside it."""
    for name, text in {"nets.py": NETS, **HELPERS, "unrelated.py": ""}.items():
        path = tmp_path / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    arms = [{"name": "mine", "design": "net"}, bad_studies.POOL]
    return tiny_study(
        designs_from=str(tmp_path / "mine" / "nets.py"), arms=arms, comparisons=[{"a": "mine", "b": "pool"}]
    )


def test_the_helpers_of_a_design_file_are_copied_and_the_folder_works_without_the_originals(
    study: Study, tmp_path: Path, tiny_data_dir: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    first = api.prepare(study, out, tiny_data_dir)
    assert {path.relative_to(out).as_posix() for path in out.rglob("*.py")} == {"designs.py", *HELPERS}
    shutil.rmtree(tmp_path / "mine")
    moved = Path(shutil.move(out, tmp_path / "moved"))
    network = catalog.find_design("net", str(moved / "designs.py")).network(SHAPE, {}, 0)
    assert sum(each.numel() for each in network.parameters()) == 7850
    again = api.prepare(Study.load(str(moved / "study.toml")), moved, tiny_data_dir)
    assert set(again.runs) == set(first.runs)
    assert again.designs_from == str(moved / "designs.py")


def test_an_edited_helper_in_a_results_folder_is_refused(study: Study, tmp_path: Path, tiny_data_dir: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    api.prepare(study, out, tiny_data_dir)
    (out / "blocks" / "plain.py").write_text("oops = 1\n", "utf-8")
    with opened(out) as store, pytest.raises(TiebreakError, match=r"blocks/plain\.py: damaged or edited"):
        read_plan(out, store)
    api.prepare(study, out, tiny_data_dir)  # from the user's own files: written again
    assert (out / "blocks" / "plain.py").read_text("utf-8") == HELPERS["blocks/plain.py"]


def test_a_helper_may_not_have_the_name_of_the_copy(study: Study, tmp_path: Path, tiny_data_dir: Path) -> None:
    (tmp_path / "mine" / "designs.py").write_text("ONE = 1\n", "utf-8")
    (tmp_path / "mine" / "nets.py").write_text(NETS.replace("import sizes", "import designs as sizes"), "utf-8")
    with pytest.raises(TiebreakError, match=r"designs\.py: .*rename"):
        api.prepare(study, tmp_path, tiny_data_dir)


def test_a_wrong_size_is_one_line_with_the_users_file_and_leaves_nothing(
    study: Study, tmp_path: Path, tiny_data_dir: Path
) -> None:
    path = tmp_path / "mine" / "nets.py"
    path.write_text(NETS.replace("shape.height * shape.width", "999"), "utf-8")
    out = tmp_path / "runs" / "first"
    with pytest.raises(TiebreakError) as caught:
        api.run(study, out, machine=Machine(data_dir=tiny_data_dir), listen=lambda message: None)
    line = NETS[: NETS.index("return self.out")].count("\n") + 1
    for part in ("design 'net'", "999", "[2, 1, 28, 28]", f"{path}:{line}"):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "runs").exists()


def test_a_refusal_leaves_a_results_folder_as_it_was(study: Study, tmp_path: Path, tiny_data_dir: Path) -> None:
    nets, out = tmp_path / "mine" / "nets.py", tmp_path / "out"
    out.mkdir()
    api.prepare(study, out, tiny_data_dir)
    seal(out / STORE_FILE)
    before = {path.name: path.stat().st_size for path in out.iterdir()}
    nets.write_text(nets.read_text("utf-8").replace("images.flatten(1)", "images"), "utf-8")
    with pytest.raises(TiebreakError, match="design 'net'"):
        api.run(study, out, machine=Machine(data_dir=tiny_data_dir), listen=lambda message: None)
    assert {path.name: path.stat().st_size for path in out.iterdir()} == {**before, ".lock": 0}
    assert api.check(out).problems == []


@pytest.mark.parametrize(
    ("body", "what"),
    [("self.out.bias.expand(len(images), -1)", "its input"), ("torch.zeros(len(images), 2)", "its parameters")],
)
def test_a_network_that_ignores_what_it_gets(
    study: Study, tmp_path: Path, tiny_data_dir: Path, body: str, what: str
) -> None:
    (tmp_path / "mine" / "nets.py").write_text(NETS.replace("self.out(images.flatten(1))", body), "utf-8")
    if what == "its parameters":
        with pytest.raises(TiebreakError, match=r"'net'.*its parameters.*nothing to train"):
            api.prepare(study, tmp_path, tiny_data_dir)
    else:
        warnings = api.prepare(study, tmp_path, tiny_data_dir).warnings
        assert any("net: " in line and "its input" in line for line in warnings)


def test_the_text_of_a_design_file_is_run_and_no_compiled_file_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run's identity covers the text; a folder from elsewhere may bring a compiled file that says something else."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "other.py").write_text("raise SystemExit('the compiled file was run')\n")
    texts = {"nets": "import helper\nDESIGNS = {'mine': helper.Mine}\n", "helper": "class Mine: ...\n"}
    for name, text in texts.items():
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        py_compile.compile(
            str(tmp_path / "other.py"),
            cfile=importlib.util.cache_from_source(str(path)),
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    before = sorted(tmp_path.rglob("*"))
    assert catalog.find_design("mine", str(tmp_path / "nets.py")).name == "mine"
    assert sorted(tmp_path.rglob("*")) == before
