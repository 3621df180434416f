"""Image augmentation: how training images are changed at random."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tiebreak.study.base import Strict


class Augment(Strict):
    """Random changes of training images, in this order: crop, flip, shift, cutout, mixup. Evaluation sees none."""

    crop: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0,
        description="the smallest side of a random window, as a share of the image's; it is resized; 1: none",
        examples=[0.8],
    )
    flip: bool = Field(default=False, description="flip every second image left to right", examples=[True])
    shift: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=0, description="shift by up to so many pixels each way; 0: none", examples=[2]
    )
    cutout: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=0, description="the side of a random square of zeros; 0: none", examples=[8]
    )
    mixup: Annotated[float, Field(ge=0, le=100)] = Field(
        default=0.0, description="alpha of the Beta distribution of mixup; 0: none", examples=[0.2]
    )

    def changes(self) -> bool:
        """Whether it does anything."""
        return self != Augment()

    def text(self) -> str:
        """For people, such as `shift 2, flip`."""
        plain = Augment()
        names = [name for name in type(self).model_fields if getattr(self, name) != getattr(plain, name)]
        texts = [name if name == "flip" else f"{name} {getattr(self, name):g}" for name in names]
        return ", ".join(texts) or "none"
