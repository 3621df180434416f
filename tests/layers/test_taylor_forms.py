from __future__ import annotations

import itertools
import math
import weakref
from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tiebreak.layers import taylor_forms
from tiebreak.layers.taylor import attend


def make(
    lead: tuple[int, ...], queries: int, keys: int, width: int, values: int, dtype: torch.dtype = torch.float64
) -> list[Tensor]:
    torch.manual_seed(0)
    shapes = ((*lead, queries, width), (*lead, keys, width), (*lead, keys, values))
    return [torch.randn(shape, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


def value_and_gradients(out: Tensor, given: list[Tensor]) -> list[Tensor]:
    loss = (out * torch.arange(1, out.numel() + 1).view_as(out).sin().to(out.dtype)).sum()
    return [out.detach(), *torch.autograd.grad(loss, given, materialize_grads=True)]


@given(d=st.integers(1, 5), terms=st.integers(1, 5), rows=st.integers(1, 3))
@settings(deadline=None, max_examples=30)
def test_monomials_are_products_over_multisets_and_weights_their_factorials(d: int, terms: int, rows: int) -> None:
    x = torch.randn(d, rows, dtype=torch.float64)
    table = taylor_forms.tables(d, terms, x.device)
    chosen = [c for n in range(terms) for c in itertools.combinations_with_replacement(range(d), n)]
    expected = torch.stack([x[list(each)].prod(dim=0) for each in chosen])
    torch.testing.assert_close(taylor_forms.monomials(x, terms, table), expected, rtol=1e-12, atol=1e-12)
    factorials = [math.prod(map(math.factorial, Counter(each).values())) for each in chosen]
    torch.testing.assert_close(table.weight[:, 0], 1 / torch.tensor(factorials, dtype=torch.float64))


@given(d=st.integers(1, 5), terms=st.integers(1, 5), rows=st.integers(1, 3))
@settings(deadline=None, max_examples=30)
def test_pulling_a_gradient_back_is_what_autograd_does(d: int, terms: int, rows: int) -> None:
    x = torch.randn(2, d, rows, dtype=torch.float64, requires_grad=True)
    table = taylor_forms.tables(d, terms, x.device)
    out = taylor_forms.monomials(x, terms, table)
    above = torch.randn_like(out)
    (expected,) = torch.autograd.grad(out, x, above, materialize_grads=True) if terms > 1 else (torch.zeros_like(x),)
    found = taylor_forms.pull_back(x.detach(), above.clone(), terms, table)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("terms", range(1, 7))
def test_horners_rule_is_the_sum_of_the_terms(terms: int) -> None:
    x = torch.linspace(-3, 3, 31, dtype=torch.float64)
    expected = torch.stack([x**n / math.factorial(n) for n in range(terms)]).sum(dim=0)
    torch.testing.assert_close(taylor_forms.polynomial(x, terms), expected, rtol=1e-12, atol=1e-12)


class Largest(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The most bytes alive at once of what is made inside, and the most entries of one tensor."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.alive = self.peak = self.entries = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = {each.untyped_storage().data_ptr() for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)}
        for each in tree_leaves(result):
            if isinstance(each, Tensor) and each.untyped_storage().data_ptr() not in given:
                storage = each.untyped_storage()
                self.alive += storage.nbytes()
                self.entries = max(self.entries, each.numel())
                weakref.finalize(storage, self.release, storage.nbytes())
        self.peak = max(self.peak, self.alive)
        return result

    def release(self, size: int) -> None:
        self.alive -= size


@pytest.mark.parametrize("causal", [False, True])
def test_memory_is_inputs_and_results_and_buffers_of_one_chunk(causal: bool) -> None:
    peaks = []
    for length in (2048, 8192):
        q, k, v = make((), length, length, 16, 64, torch.float32)
        with Largest() as seen:
            out = attend(q, k, v, causal=causal)
            torch.autograd.grad(out, (q, k, v), torch.ones_like(out))
        assert seen.entries <= max(length * 64, 856 * 153)  # no L x L matrix, no features of all tokens
        peaks.append(seen.peak)
    per_token = 4 * (64 + 64 + 16 + 16 + 64)  # the result and the four gradients, in float32
    assert peaks[1] - peaks[0] < 1.05 * 6144 * per_token
    assert 2048 * per_token < peaks[0] < 2048 * per_token + 4_000_000


def test_tables_survive_inference_mode() -> None:
    taylor_forms._known.clear()
    q, k, v = make((), 300, 300, 5, 2)
    with torch.inference_mode():
        attend(q.detach(), k.detach(), v.detach(), form="parallel")
    value_and_gradients(attend(q, k, v, form="parallel"), [q, k, v])
    value_and_gradients(attend(q, k, v, causal=True, form="recurrent"), [q, k, v])


@pytest.mark.parametrize("causal", [False, True])
def test_tables_survive_fake_tensors(causal: bool) -> None:
    taylor_forms._known.clear()
    q, k, v = (each.detach() for each in make((2,), 300, 300, 5, 2))
    with FakeTensorMode() as mode:
        fake = [mode.from_tensor(each) for each in (q, k, v)]
        assert attend(*fake, terms=5, causal=causal).shape == (2, 300, 2)
    assert torch.equal(attend(q, k, v, terms=5, causal=causal), attend(q, k, v, terms=5, causal=causal))
    traced = make_fx(lambda q: attend(q, k, v, causal=causal), tracing_mode="fake", _allow_non_fake_inputs=True)(q)
    assert torch.allclose(traced(q), attend(q, k, v, causal=causal), atol=1e-12)
