from __future__ import annotations

import math
from collections.abc import Callable
from unittest.mock import Mock

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from tiebreak.errors import TiebreakError
from tiebreak.layers.attention import attend, attend_naive

MASKS = ["none", "keys", "pairs", "shared"]


def make(lead: tuple[int, ...], queries: int, keys: int, width: int, values: int) -> list[Tensor]:
    torch.manual_seed(0)
    shapes = ((*lead, queries, width), (*lead, keys, width), (*lead, keys, values))
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def make_mask(kind: str, lead: tuple[int, ...], queries: int, keys: int) -> Tensor | None:
    """Random masks: some rows may look at nothing."""
    shapes = {"keys": (*lead, 1, keys), "pairs": (*lead, queries, keys), "shared": (queries, keys)}
    return None if kind == "none" else torch.rand(shapes[kind]) < 0.5


def by_hand(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None) -> Tensor:
    """One query at a time, over the keys that it may look at."""
    may = torch.ones(*q.shape[:-1], k.shape[-2], dtype=torch.bool)
    may = may if mask is None else may & mask
    may = may.tril() if causal else may
    out = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype)
    for place in torch.cartesian_prod(*(torch.arange(size) for size in q.shape[:-1])).view(-1, q.ndim - 1).tolist():
        row, lead = may[tuple(place)], tuple(place[:-1])
        if row.any():
            scores = k[lead][row] @ q[tuple(place)] * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
            out[tuple(place)] = scores.softmax(0) @ v[lead][row]
    return out + 0 * (q.sum() + k.sum() + v.sum())  # has gradients even where nobody looks


def value_and_gradients(out: Tensor, given: list[Tensor]) -> list[Tensor]:
    loss = (out * torch.arange(1, out.numel() + 1).view_as(out).sin()).sum()
    return [out, *torch.autograd.grad(loss, given)]


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from([(), (2,), (3, 1), (2, 3)]),
    st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5), st.integers(1, 5)),
    st.sampled_from(MASKS),
    st.booleans(),
    st.sampled_from([None, 1.0, 0.3]),
)
def test_both_forms_are_the_formula_with_its_gradients(
    lead: tuple[int, ...], sizes: tuple[int, int, int, int], kind: str, causal: bool, scale: float | None
) -> None:
    q, k, v = given = make(lead, *sizes)
    mask = make_mask(kind, lead, *sizes[:2])
    expected = value_and_gradients(by_hand(q, k, v, mask, causal, scale), given)
    for form in (attend, attend_naive):
        found = value_and_gradients(form(q, k, v, mask=mask, causal=causal, scale=scale), given)
        for one, two in zip(found, expected, strict=True):
            assert one.shape == two.shape
            assert float((one - two).detach().abs().max()) < 1e-12


@pytest.mark.parametrize("form", [attend, attend_naive])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_query_that_may_look_at_nothing_gets_zeros(form: Callable[..., Tensor], dtype: torch.dtype) -> None:
    q, k, v = (torch.randn(2, 3, 5, 4, dtype=dtype, requires_grad=True) for _ in range(3))
    mask = torch.ones(2, 1, 5, 5, dtype=torch.bool)
    mask[0] = False  # a whole example of padding
    mask[1, 0, 2] = False
    out, *gradients = value_and_gradients(form(q, k, v, mask=mask), [q, k, v])
    assert not out[0].any()
    assert not out[1, :, 2].any()
    assert out[1, :, 3].all()
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert all(not gradient[0].any() for gradient in gradients)


@pytest.mark.parametrize("form", [attend, attend_naive])
def test_true_means_may_look_and_a_query_sees_the_past_and_itself(form: Callable[..., Tensor]) -> None:
    q, k, v = torch.zeros(3, 4), torch.zeros(5, 4), torch.eye(5)
    mask = torch.tensor([True, False, True, False, False])
    assert torch.equal(form(q, k, v, mask=mask.expand(3, 5)), (mask / 2).expand(3, 5))
    assert torch.allclose(form(q, k, v, causal=True), torch.ones(3, 5).tril() / torch.tensor([[1.0], [2.0], [3.0]]))


def test_large_scores_do_not_overflow() -> None:
    q = torch.full((1, 2, 4), 1e4, requires_grad=True)
    mask = torch.tensor([[True, False], [False, False]])
    for form in (attend, attend_naive):
        out, gradient = value_and_gradients(form(q, -q, q, mask=mask), [q])
        assert out.isfinite().all()
        assert gradient.isfinite().all()


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("causal", [False, True])
def test_runs_together_are_each_run_alone_vmapped_and_traced(kind: str, causal: bool) -> None:
    runs, lead, queries = 3, (2, 3), 7
    q, k, v = (each.detach() for each in make((runs, *lead), queries, 5, 4, 6))
    mask = make_mask(kind, lead, queries, 5)

    def loss(q: Tensor, k: Tensor, v: Tensor, weight: Tensor) -> Tensor:
        return (attend(q, k, v, mask=mask, causal=causal).sin() * weight).sum()

    weights = torch.randn(runs, dtype=torch.float64)
    step = vmap(grad(loss, argnums=(0, 1, 2)))
    traced = make_fx(step)(q, k, v, weights)
    for together in (step(q, k, v, weights), traced(q, k, v, weights)):
        for run in range(runs):
            own = [each[run].clone().requires_grad_() for each in (q, k, v)]
            alone = torch.autograd.grad(loss(own[0], own[1], own[2], weights[run]), own)
            assert all(torch.allclose(a[run], b, rtol=0, atol=1e-12) for a, b in zip(together, alone, strict=True))
    products = [node for node in traced.graph.nodes if node.target is torch.ops.aten.bmm.default]
    assert len(products) == 6
    assert all(node.meta["val"].shape[0] == runs * math.prod(lead) for node in products)


def test_only_a_run_alone_takes_torchs_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Mock(wraps=F.scaled_dot_product_attention)
    monkeypatch.setattr(F, "scaled_dot_product_attention", kernel)
    q = torch.randn(2, 3, 5, 4)
    attend(q, q, q)
    attend(q[0], q[0], q[0], mask=torch.ones(5, 5, dtype=torch.bool))
    assert [call.args[0].ndim for call in kernel.call_args_list] == [4, 4]  # other numbers of axes are slow
    vmap(lambda q: attend(q, q, q))(q)
    assert kernel.call_count == 2


@pytest.mark.parametrize("form", [attend, attend_naive])
@pytest.mark.parametrize(
    ("q", "k", "v", "mask", "message"),
    [
        ((2, 5, 4), (2, 6, 4), (2, 7, 4), None, "6 keys and 7 values"),
        ((2, 5, 4), (2, 6, 3), (2, 6, 4), None, "queries have width 4 and keys 3"),
        ((2, 5, 4), (2, 0, 4), (2, 0, 4), None, "keys have length 0"),
        ((2, 0, 4), (2, 6, 4), (2, 6, 4), None, "queries have length 0"),
        ((2, 5, 4), (2, 6, 4), (4,), None, r"values need the axes .* and have \[4\]"),
        ((2, 5, 4), (2, 6, 4), (2, 6, 4), (5, 5), r"a mask of \[5, 5\] does not fit 5 queries and 6 keys"),
        ((2, 5, 4), (2, 6, 4), (2, 6, 4), (5,), "does not fit"),
        ((2, 5, 4), (2, 6, 4), (2, 6, 4), (2, 6), "does not fit"),
    ],
)
def test_shapes_that_do_not_fit_are_named(
    form: Callable[..., Tensor],
    q: tuple[int, ...],
    k: tuple[int, ...],
    v: tuple[int, ...],
    mask: tuple[int, ...] | None,
    message: str,
) -> None:
    look = None if mask is None else torch.ones(mask, dtype=torch.bool)
    with pytest.raises(TiebreakError, match=message):
        form(torch.ones(q), torch.ones(k), torch.ones(v), mask=look)


@pytest.mark.parametrize("form", [attend, attend_naive])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_integers_are_refused(form: Callable[..., Tensor], place: int) -> None:
    given = [torch.ones(2, 3, 4) for _ in range(3)]
    given[place] = given[place].long()
    with pytest.raises(TiebreakError, match=f"{('queries', 'keys', 'values')[place]} are torch.int64"):
        form(*given)
    with pytest.raises(TiebreakError, match=r"the mask is torch\.float32; it must be boolean"):
        form(*(each.float() for each in given), mask=torch.ones(3, 3))
