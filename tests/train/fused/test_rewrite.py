"""What becomes of a traced graph on its way to a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import grad, vmap

from tiebreak.layers.run_products import OP
from tiebreak.train.fused import rewrite as module
from tiebreak.train.fused.rewrite import rewrite
from tiebreak.train.fused.trace import Trace, leaves_of, trace

aten = torch.ops.aten


def begun(dtype: torch.dtype = torch.float32) -> tuple[Any, Any, Any]:
    generator = torch.Generator().manual_seed(0)
    shapes = {"w": (3, 5, 4), "v": (3, 2, 5)}
    params = {name: torch.randn(shape, generator=generator, dtype=dtype) for name, shape in shapes.items()}
    x = torch.randn(3, 6, 4, generator=generator, dtype=dtype)
    return {"params": params}, {"lr": torch.tensor([0.1, 0.2, 0.0], dtype=dtype)}, {"x": x}


def loss(params: dict[str, Tensor], x: Tensor) -> Tensor:
    return (torch.tanh(x @ params["w"].T) @ params["v"].T).square().mean()


def plain(state: Any, shared: Any, row: Any) -> Tensor:
    """A step of plain SGD."""
    gradient = vmap(grad(loss))(state["params"], row["x"])
    for name, param in state["params"].items():
        torch.addcmul(param, gradient[name], shared["lr"].view(-1, 1, 1), value=-1, out=param)
    total: Tensor = row["x"].sum()
    return total


def decayed(state: Any, shared: Any, row: Any) -> Tensor:
    """With weight decay: the gradient is no product."""
    gradient = vmap(grad(loss))(state["params"], row["x"])
    for name, param in state["params"].items():
        along = gradient[name] + 0.1 * param
        torch.addcmul(param, along, shared["lr"].view(-1, 1, 1), value=-1, out=param)
    total: Tensor = row["x"].sum()
    return total


def targets(traced: Trace) -> list[Any]:
    return [node.target for node in traced.graph.graph.nodes]


def test_steps_along_a_product_are_taken_out_and_their_factors_come_out_last() -> None:
    arguments = begun()
    traced = trace(plain, *arguments)
    descents = rewrite(traced.graph)
    state, shared, row = arguments
    assert sorted(descent.param for descent in descents) == [0, 1]
    assert sorted(descent.first for descent in descents) == [1, 4]
    assert aten.addcmul.out not in targets(traced)
    assert aten.bmm.default not in targets(traced)
    assert targets(traced).count(OP) == 3  # forward twice, and back through v; the two gradients are not computed
    wanted = {"params": {name: values.clone() for name, values in state["params"].items()}}
    plain(wanted, shared, row)
    leaves = leaves_of(*arguments)
    found = traced.graph(*leaves)
    assert len(found) == 7
    assert torch.equal(found[0], row["x"].sum())
    for descent in descents:
        a, b, rate = found[descent.first : descent.first + 3]
        param = leaves[descent.param]
        assert rate.numel() == len(param)
        param.view(len(param), a.shape[1], b.shape[2]).sub_(rate.view(-1, 1, 1) * (a @ b))
    for name, values in state["params"].items():
        torch.testing.assert_close(values, wanted["params"][name])


def test_other_updates_stay_and_their_products_are_ours() -> None:
    arguments = begun()
    traced = trace(decayed, *arguments)
    assert rewrite(traced.graph) == []
    assert targets(traced).count(aten.addcmul.out) == 2
    assert targets(traced).count(OP) == 5
    wanted = {"params": {name: values.clone() for name, values in arguments[0]["params"].items()}}
    decayed(wanted, *arguments[1:])
    traced.graph(*leaves_of(*arguments))
    for name, values in arguments[0]["params"].items():
        torch.testing.assert_close(values, wanted["params"][name])


@pytest.fixture(name="allow")
def _allow() -> Iterator[Callable[[], None]]:
    """Allow TF32, until the test is over; `monkeypatch` cannot restore this attribute."""

    def allow() -> None:
        torch.backends.cuda.matmul.allow_tf32 = True

    before = torch.backends.cuda.matmul.allow_tf32
    yield allow
    torch.backends.cuda.matmul.allow_tf32 = before


def test_where_tf32_is_allowed_large_products_are_left_to_torch(
    monkeypatch: pytest.MonkeyPatch, allow: Callable[[], None]
) -> None:
    """Of the five products of `plain`, two have 6 x 4 x 5 multiplications (along w), three have 6 x 5 x 2."""
    monkeypatch.setattr(module, "LARGE", 6 * 4 * 5)
    traced = trace(plain, *begun())
    assert len(rewrite(traced.graph)) == 2
    assert aten.bmm.default not in targets(traced)
    allow()
    traced = trace(plain, *begun())
    assert len(rewrite(traced.graph)) == 1  # v's
    assert targets(traced).count(aten.bmm.default) == 2
    assert targets(traced).count(OP) == 2


def test_double_precision_is_left_to_torch() -> None:
    traced = trace(plain, *begun(torch.float64))
    assert rewrite(traced.graph) == []
    assert OP not in targets(traced)
    assert targets(traced).count(aten.bmm.default) == 5


def test_a_gradient_that_is_also_a_result_is_computed() -> None:
    def told(state: Any, shared: Any, row: Any) -> Tensor:
        gradient = vmap(grad(loss))(state["params"], row["x"])
        for name, param in state["params"].items():
            torch.addcmul(param, gradient[name], shared["lr"].view(-1, 1, 1), value=-1, out=param)
        along: Tensor = gradient["w"]
        return along

    traced = trace(told, *begun())
    assert len(rewrite(traced.graph)) == 1  # v's only
    assert targets(traced).count(aten.addcmul.out) == 1


def test_small_products_are_sums_that_a_compiler_can_fuse(monkeypatch: pytest.MonkeyPatch) -> None:
    state, shared, row = begun()
    expected = {name: values.clone() for name, values in state["params"].items()}
    plain({"params": expected}, shared, row)
    monkeypatch.setattr(module, "SMALL", 1 << 14)
    traced = trace(plain, state, shared, row)
    assert rewrite(traced.graph, compiled=True) == []
    assert not {OP, aten.bmm.default} & set(targets(traced))
    traced(leaves_of(state, shared, row))
    for name, values in expected.items():
        torch.testing.assert_close(state["params"][name], values)
