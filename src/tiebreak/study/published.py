"""Published claims and published figures of single runs, each with the data, protocol and epochs that it is for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tiebreak.study.base import Name, Strict

DEFAULT = "default: the study's"


class Claim(Strict):
    """A published sentence, decided by a comparison if the study runs under the claim's own protocol."""

    id: Name = Field(description="a short name for tables", examples=["pool-beats-stride"])
    text: str = Field(description="the sentence", examples=["max pooling beats stride 2"])
    source: tuple[str, ...] = Field(
        default=(), strict=False, description="where it was published", examples=[["Smith 2020"]]
    )
    comparison: str = Field(description="the name of the comparison that decides it", examples=["pool vs strided"])
    also: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="further comparisons that must have the same outcome",
        examples=[["pool vs unpadded"]],
    )
    expect: Literal["a", "b", "same"] = Field(
        default="a", description="the outcome of the comparison that the claim predicts", examples=["a"]
    )
    data: str | None = Field(default=None, description=f"the claim's data set; {DEFAULT}", examples=["octmnist"])
    protocol: str | None = Field(default=None, description=f"the claim's protocol; {DEFAULT}", examples=["as-reported"])
    epochs: int | None = Field(default=None, description=f"the claim's epochs; {DEFAULT}", examples=[15])


class Reported(Strict):
    """A figure published for one run, shown beside our distribution of single runs."""

    source: str = Field(description="where it was published", examples=["Smith 2020"])
    what: str = Field(description="what the figure is, in words", examples=["pool, lr=0.1: test accuracy"])
    arm: str = Field(description="the arm that it is a figure of", examples=["pool"])
    setting: dict[str, float] = Field(description="the setting, a point of the grid", examples=[{"lr": 0.1}])
    metric: str = Field(
        description="a metric of the task, `val_` and a metric, `train_loss` or `train_loss_running`",
        examples=["accuracy"],
    )
    value: Annotated[float, Field(allow_inf_nan=False)] = Field(description="the figure", examples=[0.93])
    data: str | None = Field(default=None, description=f"the figure's data set; {DEFAULT}", examples=["octmnist"])
    protocol: str | None = Field(
        default=None, description=f"the figure's protocol; {DEFAULT}", examples=["as-reported"]
    )
    epochs: int | None = Field(default=None, description=f"the figure's epochs; {DEFAULT}", examples=[15])
