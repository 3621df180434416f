"""How a study trains: the update rule and the learning-rate schedule."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tiebreak.study.base import Strict


class Schedule(Strict):
    """A factor on the learning rate, per step. Warm-up rises from `floor`, decay falls to it."""

    kind: Literal["constant", "linear", "cosine"] = Field(
        default="constant", description="how the learning rate falls after the warm-up", examples=["cosine"]
    )
    warmup_epochs: Annotated[int, Field(ge=0)] = Field(
        default=0, description="epochs in which the learning rate rises, in a straight line", examples=[1]
    )
    decay_epochs: Annotated[int, Field(ge=0)] = Field(
        default=0, description="epochs in which it falls; 0: all epochs after the warm-up", examples=[10]
    )
    floor: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.01, description="the factor at the start of the warm-up and the end of the decay", examples=[0.01]
    )

    def depends_on_budget(self) -> bool:
        """Whether a larger number of epochs would have changed the epochs already trained."""
        return self.kind != "constant" and self.decay_epochs == 0


class Optimiser(Strict):
    """The update rule. Its learning rate, momentum and so on are hyper-parameters."""

    kind: Literal["sgd", "sgd-summed", "adam", "adamw"] = Field(
        default="sgd",
        description="the update rule; `sgd-summed` sums the gradients of a batch instead of averaging them",
        examples=["adam"],
    )
    schedule: Schedule = Field(
        default=Schedule(), description="how the learning rate changes during training", examples=[{"kind": "cosine"}]
    )
