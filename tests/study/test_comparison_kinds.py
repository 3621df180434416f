from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from support import bad_studies
from tiebreak.study.comparison_kinds import (
    DEFAULT_NAMES,
    Agreement,
    BestSetting,
    Comparison,
    Interaction,
    Order,
    Pair,
    with_name,
)

METRICS = {"arm": "x", "metrics": ["one", "two"], "margin": 0.1}
EXAMPLES: dict[str, tuple[Any, dict[str, Any], tuple[str, ...], str]] = {
    "pair": (Pair, bad_studies.PAIR, ("pool", "strided"), "pool vs strided"),
    "interaction": (
        Interaction,
        bad_studies.INTERACTION,
        ("pool", "strided", "pool-2", "strided-2"),
        "(pool - strided) vs (pool-2 - strided-2)",
    ),
    "setting": (BestSetting, bad_studies.SETTING, ("pool",), "best setting of pool"),
    "order": (Order, {"kind": "order", **METRICS}, ("x",), "order of metrics of x"),
    "agreement": (Agreement, {"kind": "agreement", **METRICS}, ("x",), "agreement of metrics of x"),
}


def read(content: object) -> Any:
    return TypeAdapter[Any](Comparison).validate_python(content)


def test_every_kind_has_an_example_and_a_default_name() -> None:
    assert EXAMPLES.keys() == DEFAULT_NAMES.keys()


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_kind_decides_the_type_the_arms_and_the_default_name(kind: str) -> None:
    expected, content, arms, name = EXAMPLES[kind]
    item = read(with_name(content, 2))
    assert isinstance(item, expected)
    assert (item.kind, item.arms(), item.name) == (kind, arms, name)


def test_a_name_of_its_own_is_kept() -> None:
    assert with_name({"name": "mine", "a": "x", "b": "y"}, 2)["name"] == "mine"


def test_the_only_comparison_is_primary() -> None:
    assert read(with_name({"a": "x", "b": "y"}, 1)).primary
    assert not read(with_name({"a": "x", "b": "y"}, 2)).primary
    assert not read(with_name({"a": "x", "b": "y", "primary": False}, 1)).primary


def test_an_unknown_kind_is_answered_with_all_of_them() -> None:
    with pytest.raises(ValidationError) as caught:
        read({"kind": "par"})
    assert all(repr(kind) in str(caught.value) for kind in DEFAULT_NAMES)


def test_what_is_no_table_is_left_to_the_model() -> None:
    assert with_name(1, 1) == 1


@pytest.mark.parametrize("margin", [0, -1.0, float("nan"), float("inf")])
def test_a_margin_is_positive_and_finite(margin: float) -> None:
    with pytest.raises(ValidationError):
        Pair(a="x", b="y", margin=margin)


def test_an_order_has_at_least_two_metrics() -> None:
    with pytest.raises(ValidationError):
        read({"kind": "order", **METRICS, "metrics": ["one"]})
