"""Networks as users write them: what trains, and what is refused with which word. Images [B, 1, 6, 6], 3 classes.

Most are `flatten, inner, middle, out`; a subclass says what happens in the middle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.models.design import Design, Images

SHAPE = Images(channels=1, height=6, width=6, classes=3)
WIDTH = 8


@dataclass(frozen=True)
class Animal:
    """One network, and what is expected of it."""

    build: Callable[[Any], Any]
    refused: str = ""  # a word of the refusal; empty: it trains
    fusible: bool = True
    draws: bool = False  # it has dropout, so that a plain loop of torch gives other numbers

    def design(self) -> Design:
        """The network as a design of a user's file."""
        name = getattr(self.build, "__name__", "network")
        return Design(name=name, family="classifier", build=self.build, text_hash=f"zoo {name}")


ZOO: dict[str, Animal] = {}


def trains(**more: Any) -> Callable[[Any], Any]:
    """Add a network that trains."""

    def add(build: Any) -> Any:
        ZOO[build.__name__] = Animal(build, **more)
        return build

    return add


def refused(word: str) -> Callable[[Any], Any]:
    """Add a network that the plan refuses."""
    return trains(refused=word)


class Net(nn.Module):
    """Two linear layers with something between them."""

    def __init__(self, shape: Images) -> None:
        super().__init__()
        self.inner: Any = nn.Linear(36, WIDTH)
        self.out = nn.Linear(WIDTH, shape.classes)
        self.more()

    def more(self) -> None:
        """Further layers."""

    def middle(self, x: Any) -> Any:
        """Hidden units [B, 8] to others."""
        return F.relu(x)

    def forward(self, images: Tensor) -> Any:
        return self.out(self.middle(self.inner(images.flatten(1))))
