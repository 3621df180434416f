"""What training needs from a task: everything that must be equal for all designs is behind this interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from tiebreak.models.interfaces import Shape
from tiebreak.names import Scalar

Split = Mapping[str, Tensor]  # tensors with the examples along the first axis
Network = Callable[..., Any]  # a design's network, called as its family says
Hypers = Mapping[str, Tensor]  # hyper-parameters of one run; those that are 0 are absent


class Data(Protocol):
    """What every loaded data set tells about itself."""

    name: str
    checksum: str
    official: bool | None
    licence: str
    citation: str


class Task(Protocol):
    """Data, split, loss, metrics and how to evaluate."""

    def load(self, name: str, data_dir: Path | None) -> Any:
        """The data set, checked; its type belongs to the family."""

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
