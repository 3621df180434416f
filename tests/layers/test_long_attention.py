"""Attention over long sequences against the formula: alone, under vmap, traced, compiled, rounded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from tiebreak.layers import long_attention
from tiebreak.layers.attention import attend, attend_naive
from tiebreak.layers.attention_kernels import forward
from tiebreak.layers.heads import MultiHead
from tiebreak.layers.long_attention import attend_if_long
from tiebreak.layers.mapped_forms import mapped_forms

MASKS = ["none", "keys", "pairs", "shared", "all queries"]
CLOSE = {torch.float32: 2e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}
ON_EACH = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
Loss = Callable[..., Tensor]
Sizes = tuple[int, int, int, int]


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sequence counts as long."""
    for kind in long_attention.LONG:
        monkeypatch.setitem(long_attention.LONG, kind, 1)


def make(lead: tuple[int, ...], sizes: Sizes, device: str = "cpu") -> list[Tensor]:
    draws = torch.Generator().manual_seed(0)
    queries, keys, width, values = sizes
    shapes = ((queries, width), (keys, width), (keys, values))
    return [torch.randn(*lead, *shape, generator=draws).to(device) for shape in shapes]


def make_mask(kind: str, lead: tuple[int, ...], queries: int, keys: int, device: str = "cpu") -> Tensor | None:
    """Random masks: some queries have no key."""
    shape = {"keys": (*lead, 1, keys), "pairs": (*lead, queries, keys), "shared": (queries, keys)}
    if kind == "none":
        return None
    draws = torch.Generator().manual_seed(1)
    return (torch.rand(shape.get(kind, (*lead, queries, 1)), generator=draws) < 0.4).to(device)


def result(form: Loss, tensors: list[Tensor]) -> list[Tensor]:
    """The result and its gradients, of tensors of any transform."""
    own = [each.detach().requires_grad_() for each in tensors]
    out = form(*own)
    above = torch.arange(1, out.numel() + 1, device=out.device).view_as(out).sin().bfloat16().to(out.dtype)
    return [out.detach(), *torch.autograd.grad(out, own, above)]


def taken(*given: Tensor, **how: Any) -> Tensor:
    found = attend_if_long(*given, **how)
    assert found is not None
    return found


def same(found: list[Tensor], wanted: list[Tensor], close: float) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        distance = (one.double() - other.double()).norm()
        # Numbers are about 1, and sums of them may cancel.
        assert float(distance) <= close * float(other.double().norm() + other.numel() ** 0.5)


def check(device: str, lead: tuple[int, ...], sizes: Sizes, how: tuple[str, bool, torch.dtype]) -> None:
    kind, causal, dtype = how
    tensors = [each.to(dtype) for each in make(lead, sizes, device)]
    mask = make_mask(kind, lead, *sizes[:2], device)
    wanted = result(partial(attend_naive, mask=mask, causal=causal, scale=0.3), [each.double() for each in tensors])
    found = result(partial(taken, mask=mask, causal=causal, scale=0.3), tensors)
    assert all(each.dtype == dtype for each in found)
    same(found, wanted, CLOSE[dtype])


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from([(2,), (3, 1), (2, 3), (2, 1, 2)]),
    st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 9), st.integers(1, 9)),
    st.sampled_from(MASKS),
    st.booleans(),
    st.sampled_from([torch.float32, torch.bfloat16]),
)
def test_it_is_the_formula_with_its_gradients(
    lead: tuple[int, ...], sizes: Sizes, kind: str, causal: bool, dtype: torch.dtype
) -> None:
    sizes = (sizes[1], *sizes[1:]) if causal else sizes
    check("cpu", lead, sizes, (kind, causal, dtype))


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", ["flash", "cudnn", "efficient"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_it_is_the_formula_on_a_gpu(kernel: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_attention, "HALF_KERNEL", kernel)
    for kind in MASKS:
        for length, width, values in ((17, 25, 8), (300, 64, 64), (129, 100, 100)):
            check("cuda", (2, 3), (length, length, width, values), (kind, True, dtype))
            check("cuda", (2, 3), (length, 77, width, values), (kind, False, dtype))


def loss(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *, causal: bool) -> Tensor:
    return attend(q, k, v, mask=mask, causal=causal).float().sin().sum()


@ON_EACH
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("causal", [False, True])
def test_runs_together_are_each_run_alone_mapped_and_traced(kind: str, causal: bool, device: str) -> None:
    runs, lead = 3, (2, 2)
    q, k, v = make((runs, *lead), (20, 20, 5, 4), device)
    k, v = k.transpose(0, 1), v[0]  # another axis of runs, and values that all runs share
    mask = make_mask(kind, (runs, *lead), 20, 20, device)
    mask = mask if kind in {"none", "shared"} else mask[:, :, :1]  # type: ignore[index]
    axes = (0, 1, None, None if kind in {"none", "shared"} else 0)
    step = vmap(grad(partial(loss, causal=causal), argnums=(0, 1, 2)), axes)
    traced = make_fx(step, tracing_mode="fake", _allow_non_fake_inputs=True)(q, k, v, mask)
    for together in (step(q, k, v, mask), traced(q, k, v, mask)):
        for run in range(runs):
            own = mask if mask is None or axes[3] is None else mask[run]
            alone = partial(attend_naive, mask=own, causal=causal)
            one = [each.double().requires_grad_() for each in (q[run], k[:, run], v)]
            wanted = torch.autograd.grad(alone(*one).sin().sum(), one)
            same([each[run] for each in together], list(wanted), 2e-5)
    names = [str(node.target) for node in traced.graph.nodes]
    assert sum("dot_product" in name for name in names) == 2  # forward and backward, for all runs
    assert not any("bmm" in name for name in names)


@ON_EACH
def test_compiled(device: str) -> None:
    q, k, v = make((2, 2, 1), (16, 16, 8, 8), device)
    mask = make_mask("keys", (2, 2, 1), 16, 16, device)
    step = vmap(grad(partial(loss, causal=True), argnums=(0, 1, 2)))
    graph = make_fx(step, tracing_mode="fake", _allow_non_fake_inputs=True)(q, k, v, mask)
    whole = torch.compile(graph, backend="inductor" if device == "cuda" else "aot_eager")
    same(list(whole(q, k, v, mask)), list(step(q, k, v, mask)), 1e-5)


@ON_EACH
def test_a_transformer_layer_of_many_runs_is_each_alone(device: str) -> None:
    """Torch's own layers, with a mask of padding as numbers, and causal."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True).to(device)
    params = {name: torch.stack([each.detach(), each.detach() * 1.1]) for name, each in layer.named_parameters()}
    x, padding = torch.randn(3, 12, 8).to(device), (torch.arange(12) > torch.tensor([[11], [7], [2]])).to(device)
    past = nn.Transformer.generate_square_subsequent_mask(12).to(device)

    def total(params: dict[str, Tensor], causal: bool) -> Tensor:
        with mapped_forms():
            how = {"src_mask": past, "is_causal": True} if causal else {"src_key_padding_mask": padding}
            return functional_call(layer, params, (x,), how).square().sum()  # type: ignore[no-any-return]

    for causal in (False, True):
        together = vmap(grad(total), (0, None))(params, causal)
        for run in range(2):
            own = {name: each[run].clone().requires_grad_() for name, each in params.items()}
            how = {"src_mask": past, "is_causal": True} if causal else {"src_key_padding_mask": padding}
            out = functional_call(layer, own, (x,), how).square().sum()
            for name, wanted in zip(own, torch.autograd.grad(out, list(own.values())), strict=True):
                assert torch.allclose(together[name][run], wanted, rtol=1e-3, atol=1e-3), name


@ON_EACH
def test_under_autocast_operands_are_rounded_and_results_are(device: str) -> None:
    layer, x = MultiHead(16, 2).to(device).requires_grad_(False), torch.randn(3, 4, 10, 16).to(device)

    def total(params: dict[str, Tensor], x: Tensor, rounded: bool) -> Tensor:
        with torch.autocast(device, torch.bfloat16, enabled=rounded, cache_enabled=False):
            q, (k, v) = layer._split(functional_call(layer.query, params, (x,))), layer.project_memory(x)
            out = attend(q.float(), k, v)
        assert out.dtype == (torch.bfloat16 if rounded else torch.float32)
        return out.float().square().sum()

    params = {name: each.detach() for name, each in layer.query.named_parameters()}
    found, wanted = (vmap(grad(total), (None, 0, None))(params, x, rounded) for rounded in (True, False))
    same(list(found.values()), list(wanted.values()), 0.05)


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where calls of the kernels are noted."""
    calls: list[int] = []

    def noted(*tensors: Any) -> Any:
        calls.append(1)
        return forward(*tensors)

    monkeypatch.setattr(long_attention, "forward", noted)
    return calls


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_mask_of_keys_as_one_more_feature(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, whose fastest kernels take no bias: masks, and in bfloat16 numbers to add."""
    tensors = [each.to(dtype) for each in make((4, 2), (20, 20, 7, 5))]
    mask = torch.rand(4, 1, 1, 20, generator=torch.Generator().manual_seed(0)) < 0.6
    mask[0] = False
    numbers = torch.randn(4, 1, 1, 20, generator=torch.Generator().manual_seed(1)).masked_fill(~mask, -torch.inf)
    numbers[1] = torch.finfo(torch.float32).min  # for all keys alike
    level = numbers.double()
    level[1] = 0.0  # a constant changes nothing
    for given_mask, exact in ((mask, mask), (numbers, level)):
        wide = [each.double() for each in tensors]
        wanted = result(partial(F.scaled_dot_product_attention, attn_mask=exact), wide)
        for kernels in ({"cpu"}, set[str]()):
            monkeypatch.setattr(long_attention, "BIASED", kernels)
            same(result(partial(taken, mask=given_mask), tensors), wanted, CLOSE[dtype])


def test_what_the_kernels_do_not_take_is_the_formula(kernels: list[int]) -> None:
    q = torch.randn(2, 2, 6, 4)
    assert attend_if_long(q.double(), q.double(), q.double()) is None
    assert attend_if_long(q, q[:, :, :5], q[:, :, :5], causal=True) is None
    assert attend_if_long(q, q[:1], q[:1]) is None
    assert attend_if_long(q, q, q, scale=-1.0) is None
    assert attend_if_long(q, q.bfloat16(), q.bfloat16()) is None
    with mapped_forms():
        for how in ({"dropout_p": 0.1}, {"enable_gqa": True}):
            F.scaled_dot_product_attention(q, q, q, **how)
    assert not kernels
    with mapped_forms():
        F.scaled_dot_product_attention(q, q, q)
    assert kernels


def test_a_learned_bias_and_second_derivatives_take_the_formula(kernels: list[int]) -> None:
    q, bias = torch.randn(3, 1, 2, 6, 4), torch.randn(6, 6)

    def total(bias: Tensor, q: Tensor) -> Tensor:
        with mapped_forms():
            return F.scaled_dot_product_attention(q, q, q, attn_mask=bias).square().sum()

    assert vmap(grad(total), (None, 0))(bias, q).abs().sum() > 0
    assert grad(lambda bias: vmap(total, (None, 0))(bias, q).sum())(bias).abs().sum() > 0
    assert vmap(grad(lambda q: grad(total, argnums=1)(bias, q).sum()))(q).abs().sum() > 0
    assert not kernels
    vmap(grad(total, argnums=1), (None, 0))(bias, q)
    assert kernels


def test_short_sequences_take_the_formula(kernels: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(long_attention.LONG, "cpu", 36)
    for length, taken in ((5, 0), (6, 1)):
        q = torch.randn(3, 1, 2, length, 4)
        vmap(lambda q: attend(q, q, q))(q)
        assert len(kernels) == taken


def test_large_scores_and_infinite_biases_stay_finite() -> None:
    q = torch.full((1, 1, 2, 4), 1e4)
    mask = torch.tensor([[True, False], [False, False]])
    bias = torch.zeros(2, 2).masked_fill(~mask, -torch.inf)
    for pairs, causal in ((mask, False), (bias, False), (mask[:1], True)):
        out, *gradients = result(partial(taken, mask=pairs, causal=causal), [q, -q, q])
        assert out[..., 0, :].eq(1e4).all()
        assert all(each.isfinite().all() for each in gradients)
