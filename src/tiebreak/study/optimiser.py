"""How a study trains: the update rule and the learning-rate schedule."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tiebreak.study.base import Strict


class Schedule(Strict):
    """A factor on the learning rate, per step. Warm-up rises from `floor`, decay falls to it."""

    kind: Literal["constant", "linear", "cosine"] = "constant"
    warmup_epochs: Annotated[int, Field(ge=0)] = 0
    decay_epochs: Annotated[int, Field(ge=0)] = 0  # 0: all epochs after the warm-up
    floor: Annotated[float, Field(ge=0, le=1)] = 0.01

    def depends_on_budget(self) -> bool:
        """Whether a larger number of epochs would have changed the epochs already trained."""
        return self.kind != "constant" and self.decay_epochs == 0


class Optimiser(Strict):
    """The update rule. Its learning rate, momentum and so on are hyper-parameters."""

    kind: Literal["sgd", "sgd-summed", "adam", "adamw"] = "sgd"
    schedule: Schedule = Schedule()
