"""The families of designs as the contract tests see them: a new family joins here, and every contract test runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import tiny
from tiebreak import catalog, names
from tiebreak.models.interfaces import Design, Images, Shape
from tiebreak.resolve import complete
from tiebreak.tasks.interface import Task

every_design = pytest.mark.parametrize("design", catalog.DESIGNS.values(), ids=list(catalog.DESIGNS))


@dataclass(frozen=True, kw_only=True)
class Family:
    """A task, shapes to build for, examples of such a shape, and a data set to train on through jobs."""

    task: str
    shapes: tuple[Shape, ...]
    small: Shape  # for tests that train
    examples: Callable[[Shape, int, int], dict[str, Tensor]]  # of a shape, how many, from which seed
    data: str
    write_data: Callable[[Path], Path]  # the data set in a folder


def images(shape: Images, count: int, seed: int) -> dict[str, Tensor]:
    """Noise, and labels that have nothing to do with it."""
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.rand(shape.example(count).shape, generator=generator)
    labels = torch.randint(0, shape.classes, (count,), generator=generator)
    return {"images": pixels, "labels": labels}


FAMILIES: dict[str, Family] = {
    "classifier": Family(
        task="classify",
        shapes=(
            Images(channels=1, height=28, width=28, classes=4),
            Images(channels=3, height=28, width=20, classes=10),
            Images(channels=1, height=33, width=31, classes=2),
        ),
        small=Images(channels=1, height=16, width=13, classes=3),
        examples=images,
        data="pneumoniamnist",
        write_data=tiny.write_data,
    ),
}


def family_of(design: Design) -> Family:
    return FAMILIES[design.family]


def task_of(design: Design) -> Task:
    return catalog.TASKS[family_of(design).task]


def build(design: Design, key: int = 1, number: int = 0) -> tuple[nn.Module, Shape]:
    """A network of the design for one of its family's shapes."""
    shape = family_of(design).shapes[number]
    return design.network(shape, complete(names.DESIGNS[design.name].options, {}), key), shape


def example(design: Design, shape: Shape, batch: int, seed: int = 0) -> tuple[dict[str, Tensor], Tensor]:
    """A batch, and weights that make its mean."""
    return family_of(design).examples(shape, batch, seed), torch.full((batch,), 1 / batch)


def floats(split: dict[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    """The split with its numbers in `dtype`; whole numbers stay what they are."""
    return {name: values.to(dtype) if values.is_floating_point() else values for name, values in split.items()}
