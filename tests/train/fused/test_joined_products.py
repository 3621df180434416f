"""Sums of products in a traced graph become one product, with the same result."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import grad, vmap

from tiebreak.train.fused.joined_products import FEWEST, PRODUCTS, join_products
from tiebreak.train.fused.trace import Trace, leaves_of, trace

RUNS, ROWS, WIDTH = 3, 4, 5


def over_time(steps: int, *, layers: bool = False) -> Any:
    """The gradient of a network that uses its weights at every time step, perhaps in linear layers."""

    def loss(weight: Tensor, enter: Tensor, x: Tensor) -> Tensor:
        state, total = x.new_zeros(ROWS, WIDTH), x.new_zeros(())
        for t in range(steps):
            parts = (F.linear(x[t], enter), F.linear(state, weight)) if layers else (x[t] @ enter, state @ weight)
            state = torch.tanh(parts[0] + parts[1])
            total = total + state.square().sum()
        return total

    def gradient(state: Any, shared: Any, row: Any) -> Any:
        mapped = grad(loss, argnums=(0, 1)) if row["x"].ndim == 3 else vmap(grad(loss, argnums=(0, 1)))
        return mapped(state["weight"], state["enter"], row["x"])

    return gradient


def arguments(steps: int) -> tuple[Any, Any, Any]:
    generator = torch.Generator().manual_seed(steps)
    weight, enter = (torch.randn(RUNS, WIDTH, WIDTH, generator=generator, dtype=torch.float64) for _ in range(2))
    x = torch.randn(RUNS, steps, ROWS, WIDTH, generator=generator, dtype=torch.float64)
    return {"weight": weight, "enter": enter}, {}, {"x": x}


def products(traced: Trace) -> int:
    return sum(node.target in PRODUCTS for node in traced.graph.graph.nodes)


def of_one(function: Any) -> Any:
    """Without an axis of runs: the first run's."""

    def call(state: Any, shared: Any, row: Any) -> Any:
        return function({name: values[0] for name, values in state.items()}, shared, {"x": row["x"][0]})

    return call


@pytest.mark.parametrize("layers", [False, True], ids=["products", "linear layers"])
@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("steps", [FEWEST, 7])
def test_the_gradient_of_a_weight_used_at_every_step_is_one_product(steps: int, alone: bool, layers: bool) -> None:
    given = arguments(steps)
    function = over_time(steps, layers=layers)
    function = of_one(function) if alone else function
    expected = function(*given)
    traced = trace(function, *given)
    before = products(traced)
    assert join_products(traced.graph.graph) == 2
    traced.graph.graph.lint()
    assert all("val" in node.meta for node in traced.graph.graph.nodes if node.op == "call_function")
    traced.graph.recompile()
    assert products(traced) == before - 2 * (steps - 1)  # the first step's state is zeros: a product too
    for found, wanted in zip(traced(leaves_of(*given)), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


def test_sums_of_two_products_and_of_other_things_stay() -> None:
    def function(state: Any, shared: Any, row: Any) -> Any:
        a, b = state["a"], row["b"]
        shared_part = a @ b
        mixed = shared_part + a @ b.mT + b  # b is no product
        used_twice = shared_part + (a.mT @ b + b @ a)  # a part of it is needed elsewhere
        scaled = torch.add(a @ a + b @ b, b @ a, alpha=2)  # a sum with a factor
        return a @ b + b @ a, mixed, used_twice, scaled

    def mapped(*given: Any) -> Any:
        return vmap(function, in_dims=(0, None, 0))(*given)

    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(RUNS, WIDTH, WIDTH, generator=generator) for _ in range(2))
    traced = trace(mapped, {"a": a}, {}, {"b": b})
    assert join_products(traced.graph.graph) == 0


def test_widened_terms_of_mixed_precision_become_one_rounded_product() -> None:
    def function(state: Any, shared: Any, row: Any) -> Any:
        terms = [(state["a"][t].mT @ row["b"][t]).float() for t in range(4)]
        return sum(terms[1:], start=terms[0])

    def mapped(*given: Any) -> Any:
        return vmap(function, in_dims=(0, None, 0))(*given)

    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(RUNS, 4, ROWS, WIDTH, generator=generator).bfloat16() for _ in range(2))
    traced = trace(mapped, {"a": a}, {}, {"b": b})
    assert join_products(traced.graph.graph) == 1
    traced.graph.recompile()
    assert products(traced) == 1
    found, exact = traced(leaves_of({"a": a}, {}, {"b": b})), (a.double().mT @ b.double()).sum(dim=1)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact, rtol=2**-8, atol=1e-6)


@pytest.mark.parametrize("late", [False, True])
def test_a_factor_that_is_changed_before_the_sum_is_not_read_later(late: bool) -> None:
    """With fixed weights, as of random features, torch allows such a change although there are gradients."""

    def function(state: Any, shared: Any, row: Any) -> Any:
        a, b = row["a"].clone(), state["b"]
        found = a @ b
        if not late:
            a[:, :1].mul_(2)
        found = found + a @ b.mT + a @ (b + 1)
        if late:
            a[:, :1].mul_(2)
        return found, a

    def mapped(*given: Any) -> Any:
        return vmap(function, in_dims=(0, None, 0))(*given)

    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(RUNS, WIDTH, WIDTH, generator=generator, dtype=torch.float64) for _ in range(2))
    given: tuple[Any, Any, Any] = {"b": b}, {}, {"a": a}
    expected = mapped(*given)
    traced = trace(mapped, *given)
    assert join_products(traced.graph.graph) == int(late)
    traced.graph.recompile()
    for found, wanted in zip(traced(leaves_of(*given)), expected, strict=True):
        torch.testing.assert_close(found, wanted)
