"""What the models of a study share: the strict base class, the types of common keys, and how a setting is written."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WrapValidator, model_validator

from tiebreak.errors import nearest
from tiebreak.study.registry import Scalar

NAME_PATTERN = r"^[a-zA-Z0-9][a-zA-Z0-9_.-]*$"
NAME_WORDS = "letters, digits, '.', '_' and '-', with a letter or digit in front"
Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=60)]
Setting = Mapping[str, float]
RunPrecision = Literal["float32", "float64", "bfloat16"]
Init = Literal["xavier-uniform", "xavier-normal", "kaiming-uniform", "kaiming-normal", "orthogonal"]
Number = Annotated[  # an integer stays one: a program may not take 64.0 for 64
    float,
    WrapValidator(lambda value, check: value if type(value) is int else check(value)),
    PlainSerializer(lambda value: value),
]
Margin = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Grid = dict[str, Annotated[tuple[Number, ...], Field(min_length=1, strict=False)]]


def _scalar(value: Any) -> Any:
    if not isinstance(value, Scalar):
        raise ValueError("should be a number, a text, true or false")
    return value


Options = dict[str, Annotated[Scalar, BeforeValidator(_scalar)]]


class Exact(BaseModel):
    """A frozen model without type coercion and without other keys.

    For files that programs write: no Python code runs while one is read, which halves the time for a large plan.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Strict(Exact):
    """For files that people write: an unknown key is an error that names the nearest valid key."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        known = _keys(cls)  # looked up once: a plan has thousands of runs with many keys
        for key in data if isinstance(data, dict) else ():
            if key not in known:
                raise ValueError(f"unknown key {key!r}; {nearest(str(key), known)}")
        return data


@cache
def _keys(model: type[BaseModel]) -> frozenset[str]:
    """The keys of a model as files write them."""
    return frozenset(field.alias or name for name, field in model.model_fields.items())


def setting_label(setting: Setting) -> str:
    """A setting as text, such as `lr=0.01`. It does not depend on the order of the keys; no two settings share a label.

    >>> setting_label({"lr": 0.01, "dropout": 0.7})
    'dropout=0.7 lr=0.01'
    """
    return " ".join(f"{key}={_number(setting[key])}" for key in sorted(setting)) or "default"


def _number(value: float) -> str:
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)
