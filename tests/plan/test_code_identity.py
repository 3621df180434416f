from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.golden_losses import source_of
from tiebreak import catalog
from tiebreak.errors import TiebreakError
from tiebreak.plan.code_identity import PACKAGE, TRAINING, Sources

ALL = set(catalog.DESIGNS)
BY_FAMILY = {
    family: {name for name, design in catalog.DESIGNS.items() if design.family == family}
    for family in {design.family for design in catalog.DESIGNS.values()}
}
LABELLED = ("classifier", "text-classifier", "language")  # families whose labels can be smoothed
WRITERS = ("translator", "recogniser")  # families whose networks write symbol by symbol
TAYLOR = {"translator-taylor", "taylor-transformer", "speech-taylor"}
HEADS = {"attention-rows", "transformer", "translator-transformer", *BY_FAMILY["recogniser"]}  # may be Taylor's


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of our code."""
    target = tmp_path_factory.mktemp("src") / "tiebreak"
    return Path(shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__")))


@pytest.fixture(scope="module")
def before(package: Path) -> dict[str, str]:
    return digests(package)


def digests(package: Path) -> dict[str, str]:
    sources = Sources(package)
    return {name: source_of(design, sources) for name, design in catalog.DESIGNS.items()}


def test_a_copy_has_the_same_digests(before: dict[str, str]) -> None:
    assert before == digests(PACKAGE)


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        pytest.param("layers/taylor.py", "terms: int = 3", "terms: int = 5", TAYLOR | HEADS, id="layer"),
        pytest.param(
            "layers/lstm.py", "keep.sigmoid()", "keep.tanh()", ALL, id="recurrent layer"
        ),  # users' LSTMs are swapped
        pytest.param("layers/dropout.py", "GOLDEN = ", "GOLDEN = 1 + ", ALL, id="dropout"),
        pytest.param("layers/kernels/product.py", "def _side(", "def _side(x=1, *", ALL, id="GPU kernel"),
        pytest.param(
            "models/speech_encoder.py", "SLOWEST = 3000.0", "SLOWEST = 3001.0", BY_FAMILY["recogniser"], id="encoder"
        ),
        pytest.param("models/mlp.py", "LAST = 120", "LAST = 121", {"mlp"}, id="one design"),
        pytest.param("models/cnn.py", "    stride = 2", "    stride = 3", {"cnn-strided", "mlp"}, id="a twin's design"),
        pytest.param(
            "models/decoding.py", "def greedy(", "def greedy(*more, ", ("translator", "recogniser"), id="decoding"
        ),
        pytest.param(
            "train/optim.py", '_running("beta1", grad, slots', '_running("beta2", grad, slots', ALL, id="optimiser"
        ),
        pytest.param("train/schedule.py", "0.5 * (1 +", "0.6 * (1 +", ALL, id="schedule"),
        pytest.param("train/evaluate.py", "BATCH = 500", "BATCH = 501", ALL, id="evaluation"),
        pytest.param("train/fused/engine.py", "EVALUATED = 200", "EVALUATED = 201", ALL, id="fused"),
        pytest.param("data/batches.py", 'stream(seed, "order", epoch)', 'stream(seed, "order", 1)', ALL, id="batches"),
        pytest.param("streams.py", "KEY_BITS = 63", "KEY_BITS = 62", ALL, id="streams"),
        pytest.param("tasks/classify.py", "scaled.div_(", "scaled.mul_(", ("classifier",), id="task"),
        pytest.param("tasks/losses.py", "rows.mean(dim=-1)", "rows.sum(dim=-1)", LABELLED, id="loss"),
        pytest.param("tasks/similarity.py", "def cer(", "def cer(*more, ", WRITERS, id="metric"),
        pytest.param("data/images/affine.py", "def move(", "def move(*more, ", ("classifier",), id="evaluation data"),
        pytest.param("data/speech/espeak_process.py", "def main(", "def main(*more, ", ("recogniser",), id="process"),
        pytest.param(
            "data/graphs/karate.py", "def make_karate(", "def make_karate(*more, ", ("node-classifier",), id="data"
        ),
        pytest.param("models/mlp.py", "LAST = 120", "LAST = 120  # another comment", (), id="comment"),
        pytest.param("models/mlp.py", '"""Pixels, h', '"""Points, h', (), id="docstring"),
        pytest.param("cost/formulas.py", "a side of {size} pixels", "one side of {size} pixels", (), id="exception"),
        pytest.param("tasks/classify.py", "CURVE_IMAGES = 500", "CURVE_IMAGES = 400", (), id="exhibit"),
        pytest.param("tasks/classify.py", 'curves[f"{kind}_value"]', 'curves[f"{kind}_values"]', (), id="its method"),
        pytest.param("train/checkpoint.py", "stored[POSITION]", 'stored["place"]', (), id="checkpoint"),
        pytest.param("drive/jobs.py", "CPU_COHORT = 16", "CPU_COHORT = 8", (), id="driver"),
        pytest.param("exchange/run_table.py", "MOST_FILES = ", "MOST_FILES = 1 + ", (), id="scores of other tools"),
        pytest.param("data/fetch.py", "import ", "import os\nimport ", (), id="download"),
        pytest.param("catalog.py", "from tiebreak.models.mlp import Mlp", "", (), id="catalog"),
    ],
)
def test_a_change_changes_the_designs_that_use_it(
    package: Path, before: dict[str, str], file: str, old: str, new: str, changed: set[str] | tuple[str, ...]
) -> None:
    path = package / file
    text = path.read_text("utf-8")
    assert old in text
    expected = changed if isinstance(changed, set) else {name for family in changed for name in BY_FAMILY[family]}
    try:
        path.write_text(text.replace(old, new, 1), "utf-8")
        after = digests(package)
    finally:
        path.write_text(text, "utf-8")
    assert {name for name in ALL if after[name] != before[name]} == expected


def test_every_entry_point_of_training_is_there() -> None:
    sources = Sources()
    for module, names in TRAINING.items():
        found = sources.module(PACKAGE.joinpath(*module.split(".")).with_suffix(".py"))
        assert set(names) <= set(found.definitions)


NETS = """
import math
import helper
from more import scale
from torch import nn
from tiebreak.layers.lstm import Lstm

WIDTH = 3  # a comment


class One(nn.Module):
    '''A docstring.'''
    def __init__(self, shape):
        super().__init__()
        self.out = nn.Linear(WIDTH, helper.double(4))


class Two(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.out = Lstm(4, scale(5))


def three(shape):
    return One(shape)


DESIGNS = {"one": One, "two": Two, "three": three, "four": lambda shape: Two(shape)}
"""
HELPER = "def double(x):\n    return 2 * x\n\n\ndef unused(x):\n    return x\n"
MORE = "import helper\n\n\ndef scale(x):\n    return helper.unused(x)\n"


@pytest.fixture
def nets(tmp_path: Path) -> Callable[..., set[str]]:
    """Which designs of a user's file have another digest after a text is replaced in one of its files."""

    def found() -> dict[str, str]:
        sources = Sources()
        path = tmp_path / "nets.py"
        return {name: sources.digest(sources.user_design(path, name)) for name in ("one", "two", "three", "four")}

    def changed(file: str, old: str, new: str) -> set[str]:
        for name, text in {"nets.py": NETS, "helper.py": HELPER, "more.py": MORE}.items():
            (tmp_path / name).write_text(text, "utf-8")
        first = found()
        text = (tmp_path / file).read_text("utf-8")
        assert old in text
        (tmp_path / file).write_text(text.replace(old, new), "utf-8")
        second = found()
        return {name for name in first if first[name] != second[name]}

    return changed


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("nets.py", "a comment", "another comment", set()),
        ("nets.py", "A docstring.", "Another docstring.", set()),
        ("nets.py", "WIDTH = 3", "WIDTH = 4", {"one", "three"}),
        ("nets.py", "Lstm(4,", "Lstm(5,", {"two", "four"}),
        ("nets.py", "lambda shape: Two(shape)", "lambda shape: One(shape)", {"four"}),
        ("nets.py", "return One(shape)", "return Two(shape)", {"three"}),
        ("nets.py", "import math\n", "import math\nmath.tau = 6\n", {"one", "two", "three", "four"}),
        ("nets.py", "from torch import nn", "from other import nn", {"one", "two", "three", "four"}),
        ("helper.py", "2 * x", "3 * x", {"one", "three"}),
        ("helper.py", "return x", "return -x", {"two", "four"}),
        ("more.py", "helper.unused", "helper.double", {"two", "four"}),
    ],
)
def test_a_users_designs_have_digests_of_their_own(
    nets: Callable[..., set[str]], file: str, old: str, new: str, expected: set[str]
) -> None:
    assert nets(file, old, new) == expected


def test_a_users_design_that_uses_our_layer_changes_with_it(tmp_path: Path, package: Path) -> None:
    path, layer = tmp_path / "nets.py", package / "layers" / "lstm.py"
    path.write_text(NETS, "utf-8")
    text = layer.read_text("utf-8")
    found = []
    try:
        for version in (text, text.replace("keep.sigmoid()", "keep.tanh()")):
            layer.write_text(version, "utf-8")
            sources = Sources(package)
            found.append({name: sources.digest(sources.user_design(path, name)) for name in ("one", "two")})
    finally:
        layer.write_text(text, "utf-8")
    assert found[0]["one"] == found[1]["one"]
    assert found[0]["two"] != found[1]["two"]


def test_a_file_that_looks_names_up_is_taken_whole(tmp_path: Path) -> None:
    path = tmp_path / "nets.py"
    found = []
    for body in ("x = 1", "x = 2"):
        path.write_text(f"{body}\ndef one(shape): return eval('x')\nDESIGNS = {{'one': one}}\n", "utf-8")
        sources = Sources()
        found.append(sources.digest(sources.user_design(path, "one")))
    assert found[0] != found[1]


def test_the_helpers_of_a_file_are_found(tmp_path: Path) -> None:
    for name, text in {"nets.py": NETS, "helper.py": HELPER, "more.py": MORE, "other.py": ""}.items():
        (tmp_path / name).write_text(text, "utf-8")
    assert Sources().helper_files(tmp_path / "nets.py") == [tmp_path / "helper.py", tmp_path / "more.py"]


def test_helpers_in_packages_and_relative_imports_are_found_and_hashed(tmp_path: Path) -> None:
    texts = {
        "nets.py": "import pkg.deep.one\ndef one(shape): return pkg.deep.one.f()\nDESIGNS = {'one': one}\n",
        "pkg/__init__.py": "",
        "pkg/two.py": "def g(): return 1\n",
        "pkg/deep/__init__.py": "",
        "pkg/deep/one.py": "from ..two import g\nfrom . import three\ndef f(): return g() + three.h()\n",
        "pkg/deep/three.py": "import base\ndef h(): return base.x\n",
        "base.py": "x = 1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    found = [path.relative_to(tmp_path).as_posix() for path in Sources().helper_files(tmp_path / "nets.py")]
    assert found == sorted(set(texts) - {"nets.py"})

    def digest() -> str:
        sources = Sources()
        return sources.digest(sources.user_design(tmp_path / "nets.py", "one"))

    for name, new in (("pkg/two.py", "def g(): return 2\n"), ("base.py", "x = 22\n")):
        before = digest()
        (tmp_path / name).write_text(new, "utf-8")
        assert digest() != before, name


def test_everything_of_a_star_import_counts(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(
        "from helper import *\ndef one(shape): return double(shape)\nDESIGNS = {'one': one}\n", "utf-8"
    )
    found = []
    for body in ("def double(x): return 2 * x\n", "def double(x): return 3 * x\n"):
        (tmp_path / "helper.py").write_text(body, "utf-8")
        sources = Sources()
        found.append(sources.digest(sources.user_design(tmp_path / "nets.py", "one")))
    assert found[0] != found[1]


@pytest.mark.parametrize("content", [b"def broken(:\n", b"\xff\xfe", b"x = '\0'\n"])
def test_a_helper_that_is_not_python_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "nets.py").write_text("import helper\nDESIGNS = {'one': helper.one}\n", "utf-8")
    (tmp_path / "helper.py").write_bytes(content)
    with pytest.raises(TiebreakError) as caught:
        Sources().helper_files(tmp_path / "nets.py")
    assert str(caught.value).startswith(str(tmp_path / "helper.py"))
    assert "\n" not in str(caught.value)


NET = "class Net:\n    width = WIDTH\n\nDESIGNS = {'one': Net}\n"


@pytest.mark.parametrize(
    ("top", "helper"),
    [
        pytest.param("try:\n    from blocks import WIDTH\nexcept OSError:\n    from other import WIDTH\n", "blocks"),
        pytest.param("if SLOW:\n    from other import WIDTH\nelse:\n    from blocks import WIDTH\n", "other"),
        pytest.param("import blocks\nWIDTH = 1\n", "blocks"),  # it may register something, or change a setting
        pytest.param("from parts.inner import WIDTH\n", "parts/__init__"),
    ],
    ids=["first of two", "last of two", "executed only", "package"],
)
def test_all_that_importing_a_users_file_may_execute_counts(tmp_path: Path, top: str, helper: str) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "inner.py").write_text("WIDTH = 1\n", "utf-8")
    (tmp_path / "nets.py").write_text(top + NET, "utf-8")
    found = []
    for number in (1, 2):
        for name in ("blocks", "other", "parts/__init__"):
            value = number if name == helper else 1
            (tmp_path / f"{name}.py").write_text(f"print({value})\nWIDTH = {value}\n", "utf-8")
        sources = Sources()
        found.append(sources.digest(sources.user_design(tmp_path / "nets.py", "one")))
    assert found[0] != found[1]


def test_a_loop_that_changes_classes_counts(tmp_path: Path) -> None:
    found = []
    for value in (1, 2):
        loop = f"WIDTH = 1\nfor name in ('depth',):\n    setattr(Net, name, {value})\n"
        (tmp_path / "nets.py").write_text(NET + loop, "utf-8")
        sources = Sources()
        found.append(sources.digest(sources.user_design(tmp_path / "nets.py", "one")))
    assert found[0] != found[1]
