"""The interface of a task: everything that must be equal for all designs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy.typing as npt
from torch import Tensor, nn

from tiebreak.data.speech.front_end import FrontEnd
from tiebreak.models.design import Shape
from tiebreak.study.registry import Scalar
from tiebreak.tasks.reply import Reply

Split = Mapping[str, Tensor]  # tensors with the examples along the first axis
Network = Callable[..., Any]  # a design's network, called as its family says
Arrays = Mapping[str, npt.NDArray[Any]]  # what an exhibit is made of
Hypers = Mapping[str, Tensor]  # hyper-parameters of one run; those that are 0 are absent


@dataclass(frozen=True, kw_only=True)
class TrainedOn:
    """What a results folder stores about the data that a network was trained on."""

    shape: Shape
    vocabulary: Mapping[str, tuple[str, ...]]
    options: Mapping[str, Scalar]  # of the task
    data: str = ""  # its name, for a task that cannot do without it
    front_end: FrontEnd | None = None  # of speech: how sound became features


class Task(Protocol):
    """Data, split, loss, metrics and how to evaluate."""

    @property
    def shared(self) -> frozenset[str]:
        """The names of the tensors of a split that all examples share, such as the edges of a graph."""

    @property
    def ordered(self) -> bool:
        """Whether examples follow one another, as the windows of a text do: they are taken one at a time, in order."""

    def load(self, name: str, data_dir: Path | None) -> Any:
        """The data set, checked. Its type is the family's; all have name, checksum, official, licence and citation."""

    def vocabulary(self, data: Any) -> dict[str, tuple[str, ...]]:
        """Names that numbers stand for, such as those of the classes: what `use` needs of the data."""

    def with_options(self, options: Mapping[str, Scalar]) -> Task:
        """The same task with these options, of the task or of an evaluation, for loss and outcomes."""

    def sizes(self, data: Any, options: Mapping[str, Scalar]) -> dict[str, int]:
        """How many examples each split has under these options."""

    def shape(self, data: Any) -> Shape:
        """What designs are built for."""

    def split(self, data: Any, name: str, options: Mapping[str, Scalar], evaluation: Mapping[str, Scalar]) -> Split:
        """One split as tensors."""

    def loss(self, network: Network, batch: Split, weights: Tensor, hypers: Hypers) -> Tensor:
        """The weighted mean loss of one batch; weights [B] sum to 1."""

    def outcomes(self, network: Network, batch: Split) -> dict[str, Tensor]:
        """Per example [B, ...]: what `score` computes the metrics from."""

    def score(self, outcomes: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, npt.NDArray[Any]]]:
        """The metrics of a whole split from its outcomes, and what to keep of each example [N].

        Kept under a metric's name is the metric of that example alone. Where the metric of the split is a ratio of sums
        (errors per character, loss per token), the denominator of each example is kept too, as `weight_…`: the entry
        of the metric in the registry names it. An example with denominator 0 has its numerator as its own metric.
        """

    def exhibits(
        self, network: nn.Module, data: Any, options: Mapping[str, Scalar], examples: Sequence[int]
    ) -> dict[str, Arrays]:
        """What a report shows of a trained network beyond numbers; `examples` of the test split are shown singly."""

    def answer(
        self, network: nn.Module, user_input: str, trained_on: TrainedOn, use_options: Mapping[str, Scalar]
    ) -> Reply:
        """The network's reply to a user's input; `use_options` are options of the command `use`."""


@runtime_checkable
class Online(Protocol):
    """A task whose evaluation may be a pass in training mode, as that of report R4 was, or train as well.

    The loss before each update is scored.
    """

    @property
    def trains_in_evaluation(self) -> bool:
        """Whether evaluation trains, under the task's options."""

    @property
    def evaluates_in_training_mode(self) -> bool:
        """Whether dropout is on in evaluation; so it is where evaluation trains."""

    def outcomes_from_losses(self, split: Split, losses: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Outcomes from the loss of every step of a pass over a split."""


def select(task: Task, split: Split, take: Callable[[Tensor], Tensor]) -> dict[str, Tensor]:
    """Some examples of a split: `take` is applied to every tensor that has an axis of examples."""
    return {name: values if name in task.shared else take(values) for name, values in split.items()}


def count(task: Task, split: Split) -> int:
    """How many examples a split has."""
    return next(len(values) for name, values in split.items() if name not in task.shared)
