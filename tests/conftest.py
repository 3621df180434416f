"""Shared fixtures: a generated data folder, and studies that train on it in a second."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tiny
from tiebreak import study_file
from tiebreak.study import Study


@pytest.fixture(scope="session")
def tiny_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for --data-dir that holds pneumoniamnist: 96 / 24 / 24 images of 28x28, two classes, easy to learn."""
    return tiny.write_data(tmp_path_factory.mktemp("tiny-data"))


@pytest.fixture(scope="session")
def tiny_study() -> Callable[..., Study]:
    """Makes a small study on pneumoniamnist; keyword arguments replace top-level keys of its file."""

    def make(**changes: Any) -> Study:
        return study_file.validate(Study, tiny.content(**changes), "tiny study")

    return make
