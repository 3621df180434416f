from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from tiebreak.errors import TiebreakError
from tiebreak.layers.bilinear import Bilinear


def make(*sizes: int) -> Bilinear:
    torch.manual_seed(0)
    return Bilinear(*sizes).double()


def sample(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def everything(results: tuple[Tensor, ...], leaves: list[Tensor]) -> list[Tensor]:
    losses = [(each * torch.arange(1, each.numel() + 1).view_as(each).sin()).sum() for each in results]
    # Where nothing is real the formula does not use the memory at all.
    return [*results, *torch.autograd.grad(torch.stack(losses).sum(), leaves, materialize_grads=True)]


def assert_close(one: list[Tensor], two: list[Tensor], bound: float = 1e-12) -> None:
    for a, b in zip(one, two, strict=True):
        assert a.shape == b.shape
        assert float((a - b).detach().abs().max()) < bound


@settings(deadline=None, max_examples=15)
@given(
    st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5)),
    st.sampled_from([(1,), (3,), (3, 1), (2, 5)]),
    st.integers(1, 5),
    st.booleans(),
)
def test_both_forms_agree_with_their_gradients(
    sizes: tuple[int, int, int], rows: tuple[int, ...], length: int, masked: bool
) -> None:
    layer = make(*sizes)
    query, memory = sample(*rows, sizes[0]), sample(rows[0], length, sizes[1])
    mask = torch.rand(rows[0], length) < 0.6 if masked else None  # some rows have nothing real
    leaves = [query, memory, *layer.parameters()]
    got, expected = (everything(form(query, memory, mask), leaves) for form in (layer, layer.naive))
    assert_close(got, expected)
    assert got[0].shape == (*rows, sizes[2])
    assert got[1].shape == (*rows, length)


def test_a_row_without_anything_real_has_context_zero() -> None:
    layer = make(5, 3, 4)
    query, memory = sample(2, 7, 5), sample(2, 6, 3)
    mask = torch.tensor([[True, False, True, True, False, False], [False] * 6])
    out, weights, *gradients = everything(layer(query, memory, mask), [query, memory, *layer.parameters()])
    assert torch.allclose(weights.sum(-1), torch.tensor([[1.0], [0.0]], dtype=torch.float64).expand(2, 7))
    assert not weights[0, :, [1, 4, 5]].any()
    alone = torch.tanh(query[1] @ layer.output.weight[:, :5].T + layer.output.bias)
    assert_close([out[1]], [alone])
    assert all(each.isfinite().all() for each in gradients)
    assert not gradients[1][1].any()
    assert not gradients[1][0, [1, 4, 5]].any()


def test_large_scores_do_not_overflow() -> None:
    layer = make(3, 3, 2).float()
    memory = torch.full((1, 4, 3), 1e6)
    out, weights = layer(memory[:, 0], memory, torch.tensor([[True, True, False, False]]))
    assert weights.tolist() == [[0.5, 0.5, 0.0, 0.0]]
    assert out.isfinite().all()


def test_it_adds_to_the_translator_what_the_report_says() -> None:
    added = sum(each.numel() for each in Bilinear(128, 128, 128).parameters())
    assert added == 289_442 - 240_162
    assert sum(each.numel() for each in Bilinear(5, 3, 4).parameters()) == 5 * 3 + 4 * (5 + 3 + 1)


def test_runs_together_are_each_run_alone_vmapped_and_traced() -> None:
    runs = 3
    torch.manual_seed(0)
    layers = [Bilinear(5, 3, 4).double() for _ in range(runs)]
    weights, _ = stack_module_state(layers)
    empty = copy.deepcopy(layers[0]).to("meta")
    query, memory = torch.randn(runs, 2, 7, 5).double(), torch.randn(runs, 2, 6, 3).double()
    mask = torch.rand(2, 6) < 0.5

    def loss(weights: dict[str, Tensor], query: Tensor, memory: Tensor) -> Tensor:
        results = functional_call(empty, weights, (query, memory, mask))
        return torch.stack(
            [(each * torch.arange(1, each.numel() + 1).view_as(each).sin()).sum() for each in results]
        ).sum()

    step = vmap(grad(loss, argnums=(0, 1, 2)))
    for together in (step(weights, query, memory), make_fx(step)(weights, query, memory)(weights, query, memory)):
        for run, layer in enumerate(layers):
            own, other = query[run].clone().requires_grad_(), memory[run].clone().requires_grad_()
            _, _, *alone = everything(layer(own, other, mask), [own, other, *layer.parameters()])
            found = [
                together[1][run],
                together[2][run],
                *(together[0][name][run] for name, _ in layer.named_parameters()),
            ]
            assert_close(found, alone)


def test_bad_input_is_named() -> None:
    with pytest.raises(TiebreakError, match="sizes must be positive, not 5, 0 and 4"):
        Bilinear(5, 0, 4)
    layer = make(5, 3, 4)
    query, memory = sample(2, 7, 5), sample(2, 6, 3)
    for wrong in (memory[:, :0], memory[..., :2], memory[0]):
        with pytest.raises(TiebreakError, match=r"the memory must be \[batch, length, 3\]"):
            layer(query, wrong)
    for wrong in (query[:, :0], query[..., :2], query[0, 0]):
        with pytest.raises(TiebreakError, match=r"queries must be \[batch, 5\] or \[batch, length, 5\]"):
            layer(wrong, memory)
    with pytest.raises(TiebreakError, match="2 rows of queries and 1 of memory"):
        layer(query, memory[:1])
    with pytest.raises(TiebreakError, match=r"queries are torch\.int64"):
        layer(query.long(), memory)
    with pytest.raises(TiebreakError, match=r"the mask is torch\.float32 \[2, 6\]; it must be boolean"):
        layer(query, memory, torch.ones(2, 6))
    with pytest.raises(TiebreakError, match=r"it must be boolean \[2, 6\]"):
        layer(query, memory, torch.ones(2, 7, dtype=torch.bool))
