from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from tiebreak.errors import TiebreakError
from tiebreak.layers import taylor
from tiebreak.layers.attention import attend
from tiebreak.layers.heads import KeyValues, MultiHead, multi_head_naive

BIASES = ["all", "none", "not-keys"]


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """These products are too small to share out."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def make(width: int, heads: int, **options: Any) -> MultiHead:
    torch.manual_seed(0)
    return MultiHead(width, heads, **options).double()


def sample(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def some(*shape: int) -> Tensor:
    """A random mask in which every row has something real."""
    mask = torch.rand(shape) < 0.5
    mask[..., 0] |= ~mask.any(dim=-1)
    return mask


def count(layer: nn.Module) -> int:
    return sum(each.numel() for each in layer.parameters())


def everything(out: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    loss = (out * torch.arange(1, out.numel() + 1).view_as(out).sin()).sum()
    return [out, *torch.autograd.grad(loss, leaves)]


def assert_close(one: list[Tensor], two: list[Tensor], bound: float = 1e-12) -> None:
    for a, b in zip(one, two, strict=True):
        assert a.shape == b.shape
        assert float((a - b).detach().abs().max()) < bound


def torchs(layer: MultiHead) -> nn.MultiheadAttention:
    """torch's layer with our numbers."""
    theirs = nn.MultiheadAttention(
        layer.width,
        layer.heads,
        bias=layer.query.bias is not None,
        kdim=layer.memory_width,
        vdim=layer.memory_width,
        batch_first=True,
    ).double()
    parts = (layer.query, layer.key, layer.value)
    with torch.no_grad():
        if theirs.in_proj_weight is not None:
            theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        else:
            for to, part in zip((theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight), parts, strict=True):
                to.copy_(part.weight)
        if theirs.in_proj_bias is not None:
            none = torch.zeros(layer.width, dtype=torch.float64)
            theirs.in_proj_bias.copy_(torch.cat([none if part.bias is None else part.bias for part in parts]))
    theirs.out_proj.load_state_dict(layer.output.state_dict())
    return theirs


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from([(3, 1), (6, 2), (15, 5), (7, 7)]),
    st.sampled_from(BIASES),
    st.tuples(st.integers(1, 3), st.integers(1, 7), st.integers(1, 7)),
    st.sampled_from([None, 5]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_with_weights_copied_it_is_torchs_layer(
    size: tuple[int, int],
    bias: str,
    sizes: tuple[int, int, int],
    memory_width: int | None,
    causal: bool,
    padded: bool,
    masked: bool,
) -> None:
    ours = make(*size, bias=bias, memory_width=memory_width)
    theirs = torchs(ours)
    batch, queries, keys = sizes
    x, memory = sample(batch, queries, size[0]), sample(batch, keys, ours.memory_width)
    real = some(batch, keys) if padded else None
    mask = some(queries, keys) if masked else None
    may = torch.ones(batch, queries, keys, dtype=torch.bool) if real is None else real[:, None].expand(-1, queries, -1)
    may = may & (True if mask is None else mask)
    may = may.tril() if causal else may
    sees = may.any(dim=-1, keepdim=True)  # the rest is NaN in torch's layer
    block = ~(may | ~sees).repeat_interleave(size[1], dim=0)
    expected = theirs(x, memory, memory, attn_mask=block, need_weights=False)[0]
    got = ours(x, memory, causal=causal, real=real, mask=mask)
    parts = [x, memory, ours.query.weight, ours.key.weight, ours.value.weight]
    others = [x, memory, *(getattr(theirs, f"{name}_proj_weight") for name in "qkv")]
    mine = everything(got.where(sees, 0.0), [*parts, *ours.output.parameters()])
    if theirs.in_proj_weight is not None:
        others = [x, memory, theirs.in_proj_weight]
        mine[3:6] = [torch.cat(mine[3:6])]
    assert_close(mine, everything(expected.where(sees, 0.0), [*others, *theirs.out_proj.parameters()]))


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from([(3, 1), (6, 2), (15, 5)]),
    st.sampled_from(BIASES),
    st.booleans(),
    st.sampled_from([None, 5]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["none", "shared", "rows", "heads"]),
)
def test_it_is_the_formula_head_by_head_with_its_gradients(
    size: tuple[int, int],
    bias: str,
    output_projection: bool,
    memory_width: int | None,
    causal: bool,
    padded: bool,
    kind: str,
) -> None:
    layer = make(*size, bias=bias, memory_width=memory_width, output_projection=output_projection)
    x, memory = sample(2, 5, size[0]), sample(2, 7, layer.memory_width)
    options: dict[str, Any] = {
        "causal": causal,
        "real": torch.rand(2, 7) < 0.5 if padded else None,
        "mask": {
            "none": None,
            "shared": torch.rand(5, 7) < 0.5,
            "rows": torch.rand(2, 5, 7) < 0.5,
            "heads": torch.rand(2, size[1], 5, 7) < 0.5,
        }[kind],
    }
    leaves = [x, memory, *layer.parameters()]
    got, expected = layer(x, memory, **options), multi_head_naive(layer, x, memory, **options)
    assert_close(everything(got, leaves), everything(expected, leaves))
    if memory_width is None and not padded and kind == "none":
        leaves = [x, *layer.parameters()]
        assert_close(everything(layer(x), leaves), everything(multi_head_naive(layer, x), leaves))


def test_one_head_is_single_head_attention() -> None:
    layer = make(7, 1, output_projection=False)
    x = sample(2, 5, 7)
    leaves = [x, *layer.parameters()]
    single = attend(layer.query(x), layer.key(x), layer.value(x), causal=True)
    assert_close(everything(layer(x, causal=True), leaves), everything(single, leaves))


@pytest.mark.parametrize("heads", [1, 2, 3, 6])
def test_heads_cost_no_parameters(heads: int) -> None:
    d, e = 6, 5
    assert count(make(d, heads, output_projection=False, bias="none")) == 3 * d**2
    assert count(make(d, heads, bias="none")) == 4 * d**2
    assert count(make(d, heads, output_projection=False)) == 3 * d**2 + 3 * d
    assert count(make(d, heads)) == 4 * d**2 + 4 * d
    assert count(make(d, heads, bias="not-keys")) == 4 * d**2 + 3 * d
    assert count(make(d, heads, memory_width=e)) == 2 * d**2 + 2 * d * e + 4 * d


def test_a_bias_of_the_keys_changes_nothing() -> None:
    layer = make(6, 3)
    x = sample(2, 5, 6)
    before = layer(x)
    with torch.no_grad():
        layer.key.bias.add_(torch.randn(6))
    assert_close([before], [layer(x)])


def test_a_row_of_padding_gets_zeros_and_no_nan() -> None:
    layer = make(6, 2, output_projection=False)
    x = sample(3, 5, 6)
    real = torch.ones(3, 5, dtype=torch.bool)
    real[1] = False
    out, *gradients = everything(layer(x, real=real), [x, *layer.parameters()])
    assert not out[1].any()
    assert out[[0, 2]].all()
    assert all(each.isfinite().all() for each in gradients)


@pytest.mark.parametrize("chunks", [(1, 1, 1, 1, 1, 1, 1), (3, 1, 1, 2), (2, 5), (7,)])
@pytest.mark.parametrize("padded", [False, True])
def test_step_by_step_is_all_at_once(chunks: tuple[int, ...], padded: bool) -> None:
    layer = make(6, 3)
    x = sample(2, 7, 6)
    real = some(2, 7) if padded else None
    past: KeyValues | None = None
    outs, at = [], 0
    for size in chunks:
        seen = None if real is None else real[:, : at + size]
        out, past = layer.step(x[:, at : at + size], past, real=seen)
        outs.append(out)
        at += size
    assert past is not None
    assert past.keys.shape == (2, 3, 7, 2)
    leaves = [x, *layer.parameters()]
    assert_close(everything(torch.cat(outs, dim=1), leaves), everything(layer(x, causal=True, real=real), leaves))


def test_a_memory_is_projected_once() -> None:
    layer = make(6, 2, memory_width=5)
    x, memory, real = sample(2, 3, 6), sample(2, 7, 5), some(2, 7)
    kept = layer.project_memory(memory)
    each = [layer.attend_to(x[:, step : step + 1], kept, real=real) for step in range(3)]
    assert_close([torch.cat(each, dim=1)], [layer(x, memory, real=real)])


@pytest.mark.parametrize("kind", ["softmax", "taylor"])
@pytest.mark.parametrize("causal", [False, True])
def test_runs_together_are_each_run_alone_vmapped_and_traced(causal: bool, kind: str) -> None:
    runs = 3
    torch.manual_seed(0)
    layers = [MultiHead(6, 2, memory_width=5, kind=kind).double() for _ in range(runs)]
    weights, _ = stack_module_state(layers)
    empty = copy.deepcopy(layers[0]).to("meta")
    x, memory, real = torch.randn(runs, 2, 7, 6).double(), torch.randn(runs, 2, 7, 5).double(), some(2, 7)

    def loss(weights: dict[str, Tensor], x: Tensor, memory: Tensor) -> Tensor:
        out: Tensor = functional_call(empty, weights, (x, memory), {"causal": causal, "real": real})
        return (out * torch.arange(1, out.numel() + 1).view_as(out).sin()).sum()

    step = vmap(grad(loss, argnums=(0, 1, 2)))
    for together in (step(weights, x, memory), make_fx(step)(weights, x, memory)(weights, x, memory)):
        for run, layer in enumerate(layers):
            own, other = x[run].clone().requires_grad_(), memory[run].clone().requires_grad_()
            out = layer(own, other, causal=causal, real=real)
            _, *alone = everything(out, [own, other, *layer.parameters()])
            found = [
                together[1][run],
                together[2][run],
                *(together[0][name][run] for name, _ in layer.named_parameters()),
            ]
            assert all(each.any() for each in alone[:2])
            assert_close(found, alone)


def test_alone_it_traces_too() -> None:
    layer = make(6, 2)
    x = sample(2, 5, 6).detach()
    assert_close([make_fx(lambda x: layer(x, causal=True))(x)(x)], [layer(x, causal=True)])


@pytest.mark.parametrize("causal", [False, True])
def test_taylor_is_taylor_attention_in_each_head(causal: bool) -> None:
    layer = make(6, 2, kind="taylor")
    x, real = sample(2, 7, 6), some(2, 7)
    q, k, v = (part(x).view(2, 7, 2, 3).transpose(1, 2) for part in (layer.query, layer.key, layer.value))
    heads = [
        taylor.attend(q[:, i], k[:, i], v[:, i], terms=3, causal=causal, mask=real, form="naive") for i in range(2)
    ]
    leaves = [x, *layer.parameters()]
    expected = everything(layer.output(torch.cat(heads, dim=-1)), leaves)
    assert_close(everything(layer(x, causal=causal, real=real), leaves), expected, 1e-10)
    if causal:
        first, past = layer.step(x[:, :4], real=real[:, :4])
        rest = []
        for at in range(4, 7):
            out, past = layer.step(x[:, at : at + 1], past, real=real[:, : at + 1])
            rest.append(out)
        assert_close([torch.cat([first, *rest], dim=1)], expected[:1], 1e-10)
        with pytest.raises(TiebreakError, match="one element at a time, not 2"):
            layer.step(x[:, :2], past)
    with pytest.raises(TiebreakError, match="no weight per pair to mask"):
        layer(x, mask=torch.ones(7, 7, dtype=torch.bool))


def test_bad_input_is_named() -> None:
    for width, heads in ((6, 4), (6, 0), (0, 1)):
        with pytest.raises(TiebreakError, match=f"a width of {width} cannot be shared by {heads} heads"):
            MultiHead(width, heads)
    with pytest.raises(TiebreakError, match="unknown kind of attention 'taylr': did you mean 'taylor'"):
        MultiHead(6, 2, kind="taylr")
    layer = make(6, 2, memory_width=5)
    x, memory = sample(2, 3, 6), sample(2, 7, 5)
    with pytest.raises(TiebreakError, match=r"the memory need the axes \[batch, length, 5\], and have \[2, 3, 6\]"):
        layer(x)
    with pytest.raises(TiebreakError, match=r"the queries need .* have \[2, 3, 5\]"):
        layer(x[..., :5], memory)
    with pytest.raises(TiebreakError, match=r"the queries are torch\.int64"):
        layer(x.long(), memory)
    with pytest.raises(TiebreakError, match=r"have \[2, 0, 5\]"):
        layer(x, memory[:, :0])
    with pytest.raises(TiebreakError, match=r"a batch of \[2\] and keys in \[1\]"):
        layer(x, memory[:1])
    with pytest.raises(TiebreakError, match=r"`real` is torch\.bool \[2, 3\]; it must be boolean \[2, 7\]"):
        layer(x, memory, real=torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(TiebreakError, match=r"`real` is torch\.float32"):
        layer(x, memory, real=torch.ones(2, 7))
    with pytest.raises(TiebreakError, match="does not fit 3 queries and 7 keys"):
        layer(x, memory, mask=torch.ones(7, 3, dtype=torch.bool))
