"""Shared fixtures: a generated data folder, and studies that train on it in a second."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from support import tiny
from tiebreak.study import parsing
from tiebreak.study.schema import Study

pytest_plugins = ["support.cli_fixtures", "support.damage"]

# Property tests that do not say how many examples they need; HYPOTHESIS_PROFILE=default for a hundred of each
settings.register_profile("quick", max_examples=25, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

if TYPE_CHECKING:
    from tiebreak.models.design import Design


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A plain `pytest` on a machine without a GPU skips what needs one."""
    if item.get_closest_marker("gpu") is not None:
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a CUDA device")


@pytest.fixture(scope="session")
def tiny_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for --data-dir that holds pneumoniamnist: 96 / 24 / 24 images of 28x28, two classes, easy to learn."""
    return tiny.write_data(tmp_path_factory.mktemp("tiny-data"))


@pytest.fixture(scope="session")
def tiny_study() -> Callable[..., Study]:
    """Makes a small study on pneumoniamnist; keyword arguments replace top-level keys of its file."""

    def make(**changes: Any) -> Study:
        return parsing.validate(Study, tiny.content(**changes), "tiny study")

    return make


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and no data of this machine's user."""
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TIEBREAK_DATA", raising=False)
    return tmp_path / "cache"


# for the parity tests in tests/contract


@pytest.fixture
def one_thread() -> Iterator[None]:
    """One thread, as in a worker: what is equal bit for bit is so with one."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def save_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after every epoch, however long it takes."""
    from tiebreak.train import trainer

    monkeypatch.setattr(trainer, "SAVE_SHARE", 1e9)


@pytest.fixture
def design(name: str, tmp_path: Path) -> Design:
    """The design that a test is parametrised with by name."""
    from support.twins import find

    return find(name, tmp_path)


@pytest.fixture(scope="session")
def family_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for --data-dir with a small data set of every family."""
    from support.families import FAMILIES

    folder = tmp_path_factory.mktemp("family-data")
    for family in FAMILIES.values():
        family.write_data(folder)
    return folder
