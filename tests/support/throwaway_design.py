"""A pytest plugin (`-p support.throwaway_design`) that adds a design to the catalog: network, name and catalog line.

Nothing else is written for it, in particular no cost formula.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from tiebreak import catalog
from tiebreak.models.design import Design, Images
from tiebreak.study import registry
from tiebreak.study.registry import DesignEntry

NAME = "throwaway"


class Throwaway(nn.Module):
    """One convolution, the mean over all places, one linear layer."""

    def __init__(self, shape: Images) -> None:
        super().__init__()
        self.conv = nn.Conv2d(shape.channels, 6, 3, padding=1)
        self.out = nn.Linear(6, shape.classes)

    def forward(self, images: Tensor) -> Tensor:
        return cast(Tensor, self.out(torch.tanh(self.conv(images)).mean(dim=(2, 3))))


DESIGN = Design(name=NAME, family="classifier", build=Throwaway)
LINE = DesignEntry(family="classifier", line="one convolution, for a test")


def pytest_configure() -> None:
    """Before anything is collected, so that tests over all designs run over this one too."""
    cast("dict[str, Design]", catalog.DESIGNS)[NAME] = DESIGN
    cast("dict[str, DesignEntry]", registry.DESIGNS)[NAME] = LINE
