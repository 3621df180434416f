"""How a study trains: the update rule and the learning-rate schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from tiebreak.study.base import Strict

Kind = Literal["sgd", "sgd-nesterov", "sgd-summed", "adam", "adamw", "nadam", "rmsprop", "adagrad", "lion"]

# Hyper-parameters whose default depends on the update rule, as in torch.optim and in the paper of Lion.
KIND_DEFAULTS: Mapping[Kind, Mapping[str, float]] = {
    "sgd-nesterov": {"momentum": 0.9},
    "rmsprop": {"beta2": 0.99},
    "adagrad": {"eps": 1e-10},
    "lion": {"beta2": 0.99},
}

# The keys that only some kinds of schedule have, with their defaults. Other kinds leave them out.
KIND_KEYS: Mapping[str, Mapping[str, float]] = {
    "step": {"step_epochs": 10, "factor": 0.1},
    "plateau": {"patience": 5, "factor": 0.1},
    "one-cycle": {"pct_start": 0.3},
}


class Schedule(Strict):
    """A factor on the learning rate, per step. Warm-up rises from `floor`, decay falls to it."""

    kind: Literal["constant", "linear", "cosine", "step", "plateau", "one-cycle"] = Field(
        default="constant",
        description="how the learning rate changes after the warm-up, see training-options.md",
        examples=["cosine"],
    )
    warmup_epochs: Annotated[int, Field(ge=0)] = Field(
        default=0, description="epochs in which the learning rate rises, in a straight line", examples=[1]
    )
    decay_epochs: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="`linear`, `cosine`: epochs in which it falls; 0: all epochs after the warm-up",
        examples=[10],
    )
    floor: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.01,
        description="the factor at the start of the warm-up and at the end of `linear` and `cosine`",
        examples=[0.01],
    )
    step_epochs: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="`step`: epochs from one reduction to the next; default 10", examples=[10]
    )
    factor: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None,
        description="`step`, `plateau`: what a reduction multiplies the rate with; default 0.1",
        examples=[0.1],
    )
    patience: Annotated[int, Field(ge=0)] | None = Field(
        default=None,
        description="`plateau`: the rate is reduced after more than so many epochs in a row without a better "
        "validation score (the study's metric); default 5",
        examples=[5],
    )
    pct_start: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None, description="`one-cycle`: the share of all steps in which it rises; default 0.3", examples=[0.3]
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, data: Any) -> Any:
        """Write out the defaults of the kind's own keys; a key of another kind is an error."""
        if not isinstance(data, dict):
            return data
        kind = data.get("kind", "constant")
        own = KIND_KEYS.get(kind, {}) if isinstance(kind, str) else {}
        for key in (key for keys in KIND_KEYS.values() for key in keys):
            if data.get(key) is not None and key not in own:
                kinds = " or ".join(repr(name) for name, keys in KIND_KEYS.items() if key in keys)
                raise ValueError(f"{key}: only for kind = {kinds}, not for {kind!r}; remove it")
        if kind == "one-cycle" and data.get("warmup_epochs"):
            raise ValueError("warmup_epochs: one-cycle has a rise of its own; set pct_start instead")
        given = {key: value for key, value in data.items() if value is not None}
        return {**own, **given}

    def depends_on_budget(self) -> bool:
        """Whether a larger number of epochs would have changed the epochs already trained."""
        return self.kind == "one-cycle" or (self.kind in ("linear", "cosine") and self.decay_epochs == 0)


class Optimiser(Strict):
    """The update rule. Its learning rate, momentum and so on are hyper-parameters."""

    kind: Kind = Field(
        default="sgd",
        description="the update rule, see training-options.md; `sgd-summed` sums the gradients of a whole pass",
        examples=["adam"],
    )
    schedule: Schedule = Field(
        default=Schedule(), description="how the learning rate changes during training", examples=[{"kind": "cosine"}]
    )
