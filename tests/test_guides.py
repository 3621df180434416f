"""The guides are true: their examples run, and every file, module and name that a page mentions exists."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import REPOSITORY

DOCS = REPOSITORY / "docs"
SOURCE = REPOSITORY / "src" / "tiebreak"
QUICKLY = ("--seeds", "1", "--epochs", "1", "--workers", "1", "--strategy", "loop")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A code block of a guide, and where the page says that it goes."""

    path: str
    how: str  # such as "a new file" or "above"
    name: str  # of the dictionary or assignment, where there is one
    code: str


PLACE = re.compile(
    r"`(?P<path>(?:src|tests)/[\w/.]+)`, "
    r"(?P<how>a new file|with the imports|in the table of its docstring|in place of|in|above)"
    r"(?: `(?P<name>\w+)`)?:\n\n```(?:python|text)\n(?P<code>.*?)^```",
    re.M | re.S,
)


def blocks_of(guide: str) -> list[Block]:
    text = (DOCS / f"{guide}.md").read_text("utf-8")
    return [Block(**{**match.groupdict(), "name": match["name"] or ""}) for match in PLACE.finditer(text)]


def toml_of(guide: str) -> str:
    (found,) = re.findall(r"^```toml\n(.*?)^```", (DOCS / f"{guide}.md").read_text("utf-8"), re.M | re.S)
    return str(found)


def put(root: Path, block: Block) -> None:
    """Do what the page says with one block."""
    path = root / block.path
    if block.how == "a new file":
        path.parent.mkdir(parents=True, exist_ok=True)
        assert not path.exists(), f"{block.path} is no new file"
        path.write_text(block.code, "utf-8")
        return
    text = path.read_text("utf-8")
    pattern = {
        "with the imports": r"^(?=from tiebreak)",  # before the first of ours
        "in": rf"^{block.name}\b[^\n]* = {{\n?",  # after the brace
        "above": rf"^(?={block.name}\b[^\n]* = )",
        "in place of": rf"^{block.name} = .*\n",
        "in the table of its docstring": r"^(?=\| a path )",
    }[block.how]
    place = re.search(pattern, text, re.M)
    assert place is not None, f"{block.path}: {block.how} {block.name}: no such place"
    kept = "" if block.how == "in place of" else place[0]
    code = block.code if "table" in block.how else f"\n{block.code}\n"
    path.write_text(f"{text[: place.start()]}{kept}{code}{text[place.end() :]}", "utf-8")


def copy_with(guide: str, folder: Path) -> Path:
    """A copy of the source and the tests (with what Python has compiled of them), changed as the guide says."""
    for name in ("src", "tests"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("*.egg-info"))
    shutil.copy(REPOSITORY / "pyproject.toml", folder)
    found = blocks_of(guide)
    assert found
    for block in found:
        put(folder, block)
    return folder


def python(root: Path, *command: str) -> str:
    """The output of `python -m ...` with the tiebreak of a changed copy."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_study(root: Path, guide: str, *options: str) -> str:
    (root / "study.toml").write_text(toml_of(guide), "utf-8")
    out = python(root, "tiebreak", "run", "study.toml", "--quick", "--out", "out", *QUICKLY, *options)
    assert (root / "out" / "report.html").is_file()
    return out


def contract_tests(root: Path, *files: str, names: str) -> None:
    python(root, "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow and not gpu", *files, "-k", names)


def test_a_design_of_the_catalog_needs_three_files(tmp_path: Path) -> None:
    found = {block.path for block in blocks_of("add-a-design")}
    assert len(found) == 3
    root = copy_with("add-a-design", tmp_path)
    contract_tests(
        root,
        "tests/contract/test_designs.py",
        "tests/contract/test_design_outputs.py",
        "tests/contract/test_costs.py",
        "tests/study/test_registry.py",
        names="cnn-depthwise or designs_are_those_of_the_catalog",
    )


def test_a_new_data_set_is_trained_on(tmp_path: Path) -> None:
    root = copy_with("add-a-data-set", tmp_path)
    random = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for split, size in (("train", 48), ("val", 16), ("test", 16)):
        arrays[f"{split}_images"] = random.integers(0, 256, (size, 28, 28), np.uint8)
        arrays[f"{split}_labels"] = np.arange(size)[:, None] % 2
    np.savez(root / "breastmnist.npz", **arrays)
    assert "pool" in run_study(root, "add-a-data-set", "--data-dir", ".")
    contract_tests(
        root, "tests/data/test_sources.py", "tests/study/test_registry_data.py", names="breastmnist or source"
    )


def test_a_new_task_family_is_trained(tmp_path: Path) -> None:
    root = copy_with("add-a-task-family", tmp_path)
    assert "mlp" in run_study(root, "add-a-task-family")
    row = ",".join(["0.5"] * 10)
    assert re.search(r"\d", python(root, "tiebreak", "use", "out", row))
    (root / "table.csv").write_text("\n".join(f"{n},{n % 7},{n % 3}" for n in range(60)), "utf-8")
    assert "2 features" in python(root, "tiebreak", "data", "check", "./table.csv")


def test_a_new_task_family_fulfils_the_contracts(tmp_path: Path) -> None:
    root = copy_with("add-a-task-family", tmp_path)
    contract_tests(
        root,
        "tests/contract/test_designs.py",
        "tests/contract/test_design_outputs.py",
        "tests/data/test_families.py",
        "tests/data/test_sources.py",
        "tests/study/test_registry.py",
        names="regressor or friedman or guessed or those_of_the_catalog",
    )


PAGES = sorted([*REPOSITORY.glob("*.md"), *DOCS.rglob("*.md")])
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
ROOTS = (REPOSITORY, SOURCE, REPOSITORY / "tests", REPOSITORY / "benchmarks")
FILE_KINDS = {"toml", "json", "html", "md", "sqlite", "py", "txt", "csv", "tsv", "npz", "tex"}
NOT_OURS = {  # a user's files, and what a results folder holds
    "my_nets.py",
    "my_designs.py",
    "torch.py",
    "designs.py",
    "train.py",
    "other.py",
    "friedman.py",
    "my-task.py",
}


def made_by_guides() -> set[str]:
    """Files that the guides create: they exist once a reader has followed them. And the tests they ask for."""
    pages = ("add-a-design", "add-a-data-set", "add-a-task-family")
    made = {block.path for page in pages for block in blocks_of(page) if block.how == "a new file"}
    made |= {path.removesuffix("/__init__.py") for path in made}  # a new folder
    tests = {re.sub(r"^src/tiebreak/(.*)/(\w+)\.py$", r"tests/\1/test_\2.py", path) for path in made}
    return made | tests | {path.removeprefix("src/tiebreak/") for path in made}


@every_page
def test_files_that_a_page_mentions_exist(page: Path) -> None:
    known = NOT_OURS | made_by_guides()
    stems = {path.name for folder in ("src", "tests", "benchmarks") for path in (REPOSITORY / folder).rglob("*.py")}
    for mention in re.findall(r"(?<![\w./-])(\w[\w/-]*\.py)\b(?!\()", page.read_text("utf-8")):
        if mention not in known:
            there = mention in stems or any((root / mention).is_file() for root in (*ROOTS, page.parent))
            assert there, mention


@every_page
def test_results_and_folders_that_a_page_mentions_exist(page: Path) -> None:
    for mention in re.findall(r"`((?:src|tests|benchmarks|docs)/[\w/.-]*?)`", page.read_text("utf-8")):
        if mention not in made_by_guides():
            assert (REPOSITORY / mention).exists(), mention


@every_page
def test_tests_that_a_page_mentions_exist(page: Path) -> None:
    for path, name in re.findall(r"(tests/[\w/]+\.py)::(\w+)", page.read_text("utf-8")):
        assert re.search(rf"^def {name}\(", (REPOSITORY / path).read_text("utf-8"), re.M), f"{path}::{name}"


@every_page
def test_modules_and_names_that_a_page_mentions_exist(page: Path) -> None:
    """`tiebreak.room.module.name`; those of a new module of a guide are created by the guide."""
    made = {path.removesuffix(".py").replace("/", ".") for path in made_by_guides()}
    for mention in set(re.findall(r"\btiebreak\.[a-z_]+[\w.]*\w", page.read_text("utf-8"))):
        if not any(mention.startswith(f"tiebreak.{name}") for name in made):
            assert resolves(mention), mention


@every_page
def test_a_report_is_called_a_report_where_a_page_first_mentions_it(page: Path) -> None:
    text = page.read_text("utf-8")
    first = re.search(r"\bR[0-4]\b", text)
    assert first is None or re.search(r"\b[Rr]eports? $", text[: first.start()]), text[: first.end()].splitlines()[-1]


def test_the_glossary_has_every_word_of_the_word_list() -> None:
    table = (DOCS / "architecture.md").read_text("utf-8").partition("## Words")[2].partition("## Flow")[0]
    words = {word for row in re.findall(r"^\| ([a-z, ]+) \|", table, re.M) for word in row.split(", ")} - {"word"}
    assert words > {"task", "design", "arm", "exhibit"}
    entries = set(re.findall(r"^\*\*([^*]+)\*\*: ", (DOCS / "glossary.md").read_text("utf-8"), re.M))
    assert words <= entries


@every_page
def test_short_names_of_modules_that_a_page_mentions_exist(page: Path) -> None:
    """`room.module.name` or `module.name`, as the page of the architecture writes them."""
    modules = {path.stem: path.relative_to(SOURCE).with_suffix("") for path in SOURCE.rglob("*.py")}
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    for mention in set(re.findall(r"`([a-z_]+(?:\.\w+)+)[`(]", page.read_text("utf-8"))):
        first, _, rest = mention.partition(".")
        if (
            rest in ("toml", "json", "html", "md", "sqlite", "py", "txt", "csv", "tsv", "npz", "tex")
            or first == "tiebreak"
        ):
            continue
        places = [f"tiebreak.{first}"] if first in rooms else []
        places += [f"tiebreak.{'.'.join(modules[first].parts)}"] if first in modules else []
        assert not places or any(resolves(f"{place}.{rest}") for place in places), mention


def resolves(dotted: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one. Kernels need triton: their files are enough."""
    parts = dotted.split(".")
    if parts[1:3] == ["layers", "kernels"] and SOURCE.joinpath(*parts[1:]).with_suffix(".py").is_file():
        return True
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for name in parts[end:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False
