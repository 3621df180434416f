"""How sound becomes features: what a results folder stores, so that a trained network gets the features it knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, kw_only=True)
class FrontEnd:
    """Sample rates, mel bands, and what the features of training were normalised by (none: they were not)."""

    __pydantic_config__: ClassVar[Any] = {"strict": False, "extra": "forbid"}  # plan.json has lists for tuples

    rate: int  # samples a second, to which sound is resampled
    filter_rate: int  # the rate that the mel filters are made for
    mels: int
    mean: tuple[float, ...] = ()  # of every band, subtracted
    deviation: tuple[float, ...] = ()  # of every band, divided by afterwards

    def __post_init__(self) -> None:
        if not len(self.mean) == len(self.deviation) in (0, self.mels):
            raise ValueError(f"{len(self.mean)} means and {len(self.deviation)} deviations for {self.mels} mel bands")
