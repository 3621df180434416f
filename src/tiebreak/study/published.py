"""Published claims and published figures of single runs, each with the data, protocol and epochs that it is for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tiebreak.study.base import Name, Strict


class Claim(Strict):
    """A published sentence, decided by a comparison if the study runs under the claim's own protocol."""

    id: Name
    text: str
    source: tuple[str, ...] = Field(default=(), strict=False)
    comparison: str
    also: tuple[str, ...] = Field(default=(), strict=False)  # further comparisons that must have the same outcome
    expect: Literal["a", "b", "same"] = "a"
    data: str | None = None
    protocol: str | None = None
    epochs: int | None = None


class Reported(Strict):
    """A figure published for one run, shown beside our distribution of single runs."""

    source: str
    what: str
    arm: str
    setting: dict[str, float]
    metric: str
    value: Annotated[float, Field(allow_inf_nan=False)]
    data: str | None = None
    protocol: str | None = None
    epochs: int | None = None
