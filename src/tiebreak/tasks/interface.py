"""What training needs from a task: everything that must be equal for all designs is behind this interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt
from torch import Tensor, nn

from tiebreak.models.interfaces import Shape
from tiebreak.names import Scalar

Split = Mapping[str, Tensor]  # tensors with the examples along the first axis
Network = Callable[..., Any]  # a design's network, called as its family says
Arrays = Mapping[str, npt.NDArray[Any]]  # what an exhibit is made of
Hypers = Mapping[str, Tensor]  # hyper-parameters of one run; those that are 0 are absent


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One of the things that a network says of an input, and how likely it finds it."""

    text: str
    probability: float


class Task(Protocol):
    """Data, split, loss, metrics and how to evaluate."""

    def load(self, name: str, data_dir: Path | None) -> Any:
        """The data set, checked. Its type is the family's; all have name, checksum, official, licence and citation."""

    def sizes(self, data: Any, options: Mapping[str, Scalar]) -> dict[str, int]:
        """How many examples each split has under these options."""

    def shape(self, data: Any) -> Shape:
        """What designs are built for."""

    def split(self, data: Any, name: str, options: Mapping[str, Scalar], evaluation: Mapping[str, Scalar]) -> Split:
        """One split as tensors."""

    def loss(self, network: Network, batch: Split, weights: Tensor, hypers: Hypers) -> Tensor:
        """The weighted mean loss of one batch; weights [B] sum to 1."""

    def outcomes(self, network: Network, batch: Split) -> dict[str, Tensor]:
        """Per example [B]: what the metrics are made of."""

    def metrics(self, outcomes: Mapping[str, Any]) -> dict[str, float]:
        """The metrics of a whole split from its outcomes."""

    def exhibits(
        self, network: nn.Module, data: Any, options: Mapping[str, Scalar], examples: Sequence[int]
    ) -> dict[str, Arrays]:
        """What a report shows of a trained network beyond numbers; `examples` of the test split are shown singly."""

    def answer(
        self, network: nn.Module, given: str, shape: Shape, options: Mapping[str, Scalar], class_names: Sequence[str]
    ) -> tuple[list[Answer], str]:
        """What the network says of an input from outside, most likely first, and what was done to the input."""
