"""An arm of a study: what is compared, and the keys of its table."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from tiebreak.study.augment import Augment
from tiebreak.study.base import Grid, Init, Name, Options, RunPrecision, Strict
from tiebreak.study.optimiser import Optimiser
from tiebreak.study.program_keys import Command

Batch = Annotated[int, Field(ge=1, le=1_000_000)]


class Arm(Strict):
    """What is compared: a design, plus what the study changes for it."""

    name: Name = Field(description="how comparisons and the report call the arm", examples=["pool"])
    design: str = Field(description="a design of the catalog, or one of `designs_from`", examples=["cnn-pool"])
    build: Options = Field(default={}, description="options of the design, such as its width", examples=[{"width": 32}])
    options: Options = Field(
        default={},
        description="options of the task for this arm; they are added to the study's",
        examples=[{"shuffle_pixels": True}],
    )
    evaluation: Options = Field(
        default={},
        description="how the trained runs are evaluated; arms that differ only in this share their trained runs",
        examples=[{"shift": 2}],
    )
    fixed: dict[str, float] = Field(
        default={},
        description="hyper-parameters of this arm that are not tuned; they are added to the study's",
        examples=[{"dropout": 0.5}],
    )
    protocol: str | None = Field(
        default=None, description="replaces the study's protocol for this arm", examples=["audited"]
    )
    optimiser: Optimiser | None = Field(
        default=None, description="replaces the study's optimiser for this arm", examples=[{"kind": "adam"}]
    )
    grid: Grid | None = Field(
        default=None,
        description="replaces the study's grid for this arm; every arm should have as many settings",
        examples=[{"lr": [0.003, 0.001]}],
    )
    batch: Batch | None = Field(
        default=None,
        description="replaces the batch size of the budget for this arm; `budget.equal` says what stays equal",
        examples=[32],
    )
    augment: Augment | None = Field(
        default=None, description="replaces the study's image augmentation for this arm", examples=[{"shift": 2}]
    )
    init: Init | None = Field(
        default=None, description="replaces the study's initialisation for this arm", examples=["orthogonal"]
    )
    precision: RunPrecision | None = Field(
        default=None, description="replaces the study's precision for this arm", examples=["bfloat16"]
    )
    epochs_times: Annotated[int, Field(ge=1, le=1_000)] = Field(
        default=1, description="multiplies the epochs of the budget for this arm", examples=[2]
    )
    with_values: Options = Field(
        default={},
        alias="with",
        description="of a program: values for the placeholders of its command",
        examples=[{"arch": "resnet"}],
    )
    command: Command | None = Field(
        default=None,
        description="of a program: the arm's own command, instead of the study's",
        examples=[["{python}", "other.py", "{seed}", "{out}"]],
    )
    function: str | None = Field(
        default=None,
        description="of a program: the arm's own function, instead of the study's",
        examples=["my_module:train"],
    )

    @model_serializer(mode="wrap")
    def _with_key(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """`with` is a word of Python: the key has another name in the code. Only programs have it."""
        content: dict[str, Any] = handler(self)
        if values := content.pop("with_values", None):
            content["with"] = values
        return content
