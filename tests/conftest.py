"""Shared fixtures: a data set small enough to train on within a test, and studies that use it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

from tiebreak import study_file
from tiebreak.study import Study

SIZES = {"train": 96, "val": 24, "test": 24}


class StudyFactory(Protocol):
    def __call__(self, **changes: Any) -> Study: ...


def write_tiny_data(folder: Path, *, key: int = 0) -> Path:
    """A pneumoniamnist.npz in the MedMNIST layout: the left half is bright in class 0, the right half in class 1."""
    random = np.random.default_rng(key)
    arrays: dict[str, Any] = {}
    for split, size in SIZES.items():
        labels = random.permutation(np.arange(size) % 2)
        images = random.integers(0, 96, (size, 28, 28))
        images[labels == 0, :, :14] += 128
        images[labels == 1, :, 14:] += 128
        arrays[f"{split}_images"] = images.astype(np.uint8)
        arrays[f"{split}_labels"] = labels[:, None].astype(np.uint8)
    np.savez(folder / "pneumoniamnist.npz", **arrays)
    return folder


@pytest.fixture(scope="session")
def tiny_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for --data-dir that holds pneumoniamnist: 96 / 24 / 24 images of 28x28, two classes, easy to learn."""
    return write_tiny_data(tmp_path_factory.mktemp("tiny-data"))


def tiny_content(**changes: Any) -> dict[str, Any]:
    """What a small study file says: two arms, one epoch, two seeds, nothing tuned. `changes` replace whole keys."""
    content: dict[str, Any] = {
        "name": "tiny",
        "question": "Does max pooling classify better than stride 2?",
        "task": "classify",
        "data": "pneumoniamnist",
        "metric": "accuracy",
        "margin": 0.05,
        "seeds": 2,
        "budget": {"epochs": 1, "batch": 8},
        "fixed": {"lr": 0.1},
        "arms": [{"name": "pool", "design": "cnn-pool"}, {"name": "strided", "design": "cnn-strided"}],
        "comparisons": [{"a": "pool", "b": "strided", "primary": True}],
    }
    return {key: value for key, value in {**content, **changes}.items() if value is not None}


@pytest.fixture(scope="session")
def tiny_study() -> StudyFactory:
    """Makes a small study on pneumoniamnist; keyword arguments replace top-level keys of its file."""

    def make(**changes: Any) -> Study:
        return study_file.validate(Study, tiny_content(**changes), "tiny study")

    return make
