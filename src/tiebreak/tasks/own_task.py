"""A user's own task: the functions `load`, `loss` and `metrics` of a design file.

    load(path)              the data: a dict of tensors for each of train, val and test, or one for all examples
    loss(network, batch)    a loss for each example [B]; `batch` is a dict of tensors [B, ...]
    metrics(network, batch) a dict of numbers for each example [B]; a metric of a split is their mean

They are called as the methods of every task are: the loss inside the fused step of many runs, the metrics after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from tiebreak.data.user_paths import find_user_path
from tiebreak.errors import TiebreakError
from tiebreak.models.own_shape import Tensors
from tiebreak.models.users_lines import error_line
from tiebreak.study.registry import Scalar, is_path
from tiebreak.tasks.interface import Arrays, Hypers, Network, Split, TrainedOn
from tiebreak.tasks.own_splits import OwnData, own_data
from tiebreak.tasks.reply import Reply

LOSS = "loss"  # the name of the metric that every task has


class NetworkCalled(BaseException):  # no error, and no `except Exception` of the user's may take it
    """Ends a call of the loss at its first call of the network, with the arguments."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__()
        self.arguments, self.named = arguments, named


class _Probe:
    """What the loss gets for a network before there is one."""

    def __call__(self, *arguments: Any, **named: Any) -> None:
        raise NetworkCalled(*arguments, **named)

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        """None yet: a penalty of weights may be computed before the first call."""
        return iter(())

    def named_parameters(self, *_: Any, **__: Any) -> Iterator[tuple[str, nn.Parameter]]:
        """None yet."""
        return iter(())

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the network is tried without its {name!r} first; call network(...) before you use that")


@dataclass(frozen=True)
class OwnTask:
    """The task of the functions of a file."""

    where: str  # the file, for messages
    load_function: Callable[..., Any]
    loss_function: Callable[..., Any]
    metrics_function: Callable[..., Any]

    shared: frozenset[str] = frozenset()
    ordered: bool = False

    def load(self, name: str, data_dir: Path | None) -> OwnData:
        """What `load` returns for the path that the study names; without one it is called with nothing."""
        arguments = [find_user_path(name, data_dir).resolve()] if is_path(name) else []
        try:
            return own_data(name, self.load_function(*arguments))
        except TiebreakError as error:
            raise TiebreakError(f"{self.where}: load: {error}") from None
        except Exception as error:  # it may raise anything
            raise TiebreakError(f"{self.where}: load: {error_line(error)}") from error

    def vocabulary(self, data: OwnData) -> dict[str, tuple[str, ...]]:
        """None: numbers have no names."""
        return {}

    def with_options(self, options: Mapping[str, Scalar]) -> OwnTask:
        """The same: an own task has no options."""
        return self

    def sizes(self, data: OwnData, options: Mapping[str, Scalar]) -> dict[str, int]:
        """How many examples each split has."""
        return data.sizes

    def shape(self, data: OwnData) -> Tensors:
        """What the loss calls the network with, for two examples of the training data."""
        try:
            self.loss_function(_Probe(), {name: values[:2] for name, values in data.splits["train"].items()})
        except NetworkCalled as call:
            tensors = [each for each in call.arguments if isinstance(each, Tensor) and each.ndim]
            if call.named or not tensors or len(tensors) != len(call.arguments):
                raise TiebreakError(
                    f"{self.where}: loss: should call the network with tensors by position, with the examples along"
                    " their first axis"
                ) from None
            return Tensors.of(tensors)
        except Exception as error:  # it may raise anything
            raise TiebreakError(f"{self.where}: loss: {error_line(error)}") from error
        raise TiebreakError(f"{self.where}: loss: returned without calling the network; call it: network(...)")

    def split(self, data: OwnData, name: str, options: Mapping[str, Scalar], evaluation: Mapping[str, Scalar]) -> Split:
        """The tensors of a split."""
        return data.splits[name]

    def loss(self, network: Network, batch: Split, weights: Tensor, hypers: Hypers) -> Tensor:
        """The weighted mean of the examples' losses."""
        return (weights * self.losses(network, batch).to(weights.dtype)).sum()

    def losses(self, network: Network, batch: Split) -> Tensor:
        """The loss of each example [B]."""
        return self._numbers(self.loss_function(network, dict(batch)), batch, "loss")

    def outcomes(self, network: Network, batch: Split) -> dict[str, Tensor]:
        """The metrics of each example, and its loss."""
        once = _Once(network)
        found = self.metrics_function(once, dict(batch))
        if not isinstance(found, Mapping):
            raise TiebreakError(f"{self.where}: metrics: should return a dict of tensors, not {type(found).__name__}")
        outcomes = {
            str(name): self._numbers(values, batch, f"metrics[{name!r}]").float() for name, values in found.items()
        }
        return {**outcomes, LOSS: self.losses(once, batch).float()}

    def _numbers(self, values: Any, batch: Split, what: str) -> Tensor:
        """Refuse what is not one real number for each example."""
        count = len(next(iter(batch.values())))
        found = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
        if found != [count] or values.is_complex():
            raise TiebreakError(
                f"{self.where}: {what}: should be a tensor with a number for each example, of shape [{count}] for a"
                f" batch of {count}, not {found}"
            )
        return values  # type: ignore[no-any-return]

    def score(self, outcomes: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, npt.NDArray[Any]]]:
        """Every metric is the mean over the examples, and is kept for each."""
        return {name: float(np.mean(values, dtype=np.float64)) for name, values in outcomes.items()}, dict(outcomes)

    def exhibits(
        self, network: nn.Module, data: OwnData, options: Mapping[str, Scalar], examples: Sequence[int]
    ) -> dict[str, Arrays]:
        """The report shows nothing beyond numbers."""
        return {}

    def answer(
        self, network: nn.Module, user_input: str, trained_on: TrainedOn, use_options: Mapping[str, Scalar]
    ) -> Reply:
        """Refused: what an input of a user's own task is written like is not known."""
        raise TiebreakError(
            "the task is your own, and so is how an input is written; in Python, tiebreak.load_network(FOLDER) gives"
            " the trained network"
        )


class Losses(nn.Module):
    """The loss of a network as its forward pass, of the tensors of a batch in the order of their names."""

    def __init__(self, task: OwnTask, network: nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.task, self.network, self.names = task, network, tuple(names)

    def forward(self, *tensors: Tensor) -> Tensor:
        """The loss of each example."""
        return self.task.losses(self.network, dict(zip(self.names, tensors, strict=True)))


class _Once:
    """A network that computes what it is called with again only once: metrics and loss mostly call it alike."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._calls: list[tuple[Sequence[Tensor], list[int]]] = []  # arguments and result, and their versions

    def __getattr__(self, name: str) -> Any:
        """What the network has, its parameters or another method."""
        return getattr(self._network, name)

    def __getitem__(self, place: Any) -> Any:
        """A layer, where the network has them by number or name."""
        return self._network[place]  # type: ignore[index]

    def __iter__(self) -> Iterator[Any]:
        """Its layers."""
        return iter(self._network)  # type: ignore[call-overload, no-any-return]

    def __len__(self) -> int:
        """How many layers."""
        return len(self._network)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        """As every network without a length."""
        return True

    def __call__(self, *arguments: Tensor, **named: Any) -> Tensor:
        if named:
            raise TiebreakError("the network should be called with tensors by position")
        for tensors, versions in self._calls:
            if _alike(tensors[:-1], arguments) and [each._version for each in tensors] == versions:
                return tensors[-1]
        result: Tensor = self._network(*arguments)
        tensors = (*arguments, result)
        self._calls.append((tensors, [each._version for each in tensors]))
        return result


def _alike(known: Sequence[Tensor], given: Sequence[Tensor]) -> bool:
    return len(known) == len(given) and all(one is other for one, other in zip(known, given, strict=True))
