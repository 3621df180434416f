"""Long orthogonal q and k: features cancel, where the formula as it stands does not."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.func import vmap

from tiebreak.errors import TiebreakError
from tiebreak.layers import taylor
from tiebreak.layers.taylor_forms import How, naive, polynomial, scan
from tiebreak.layers.taylor_rounding import FAR, LIMIT, bound, least

D, LENGTH = 16, 600


def orthogonal(size: float) -> tuple[Tensor, Tensor, Tensor]:
    """Every q is orthogonal to every k, and |q| |k| = size."""
    generator = torch.Generator().manual_seed(0)
    turn, _ = torch.linalg.qr(torch.randn(D, D, generator=generator))
    q, k = (F.normalize(torch.randn(LENGTH, D // 2, generator=generator), dim=-1) * size**0.5 for _ in range(2))
    return q @ turn[: D // 2], k @ turn[D // 2 :], torch.randn(LENGTH, 4, generator=generator)


def reference(q: Tensor, k: Tensor, v: Tensor, terms: int, causal: bool) -> Tensor:
    return taylor.attend(*(each.double() for each in (q, k, v)), terms=terms, causal=causal, scale=1.0, form="naive")


def unguarded(q: Tensor, k: Tensor, v: Tensor, terms: int) -> Tensor:
    how = How(terms, 1.0, False, 1024, torch.float32)
    return torch.cat([result for _, result, _ in scan(q, k, v, None, how)], dim=-2)


@pytest.mark.parametrize(("terms", "size", "off"), [(3, 4700, 0.03), (5, 745, 1.0)])
def test_float32_loses_the_normaliser_and_the_guard_keeps_it(terms: int, size: float, off: float) -> None:
    """The figures of the issue: an error of 0.14 with three terms, no number with five."""
    q, k, v = orthogonal(size)
    wanted = reference(q, k, v, terms, False)
    assert not float((unguarded(q, k, v, terms) - wanted).abs().max()) < off
    found = taylor.attend(q, k, v, terms=terms, scale=1.0, form="parallel")
    assert found.dtype == torch.float32
    assert float((found - wanted).abs().max()) < 1e-5
    for form in ("chunked", "recurrent"):
        causal = taylor.attend(q, k, v, terms=terms, scale=1.0, causal=True, form=form)
        assert float((causal - reference(q, k, v, terms, True)).abs().max()) < 1e-4


@pytest.mark.parametrize("terms", [3, 5])
def test_the_gradient_is_kept_too(terms: int) -> None:
    given = [each.requires_grad_() for each in orthogonal(745)]
    exact = [each.detach().double().requires_grad_() for each in given]
    weights = torch.rand(LENGTH, 4, generator=torch.Generator().manual_seed(1))
    found = torch.autograd.grad((taylor.attend(*given, terms=terms, scale=1.0, form="parallel") * weights).sum(), given)
    out = taylor.attend(*exact, terms=terms, scale=1.0, form="naive")
    for one, other in zip(found, torch.autograd.grad((out * weights).sum(), exact), strict=True):
        assert float((one - other).norm() / other.norm()) < 1e-4


@pytest.mark.parametrize(("terms", "size"), [(3, 4700.0), (5, 745.0)])
def test_a_traced_result_is_no_number_where_it_would_be_wrong_and_the_same_elsewhere(terms: int, size: float) -> None:
    far, near = orthogonal(size), orthogonal(20.0)
    both = [torch.stack(pair) for pair in zip(far, near, strict=True)]
    fused = vmap(lambda q, k, v: taylor.attend(q, k, v, terms=terms, scale=1.0, form="parallel"))(*both)
    assert fused[0].isnan().all()
    assert torch.allclose(fused[1], unguarded(*near, terms), atol=1e-4)


def test_short_vectors_keep_their_numbers_bit_for_bit() -> None:
    q, k, v = orthogonal(50.0)
    assert torch.equal(taylor.attend(q, k, v, scale=1.0, form="parallel"), unguarded(q, k, v, 3))


def test_what_even_float64_cannot_do_is_refused() -> None:
    q, k, v = orthogonal(1e9)
    with pytest.raises(TiebreakError, match="normalise q and k"):
        taylor.attend(q, k, v, scale=1.0, form="parallel")


@pytest.mark.parametrize("size", [1e3, 1e30, float("inf")])
@pytest.mark.parametrize("causal", [False, True])
def test_what_is_masked_may_be_anything(size: float, causal: bool) -> None:
    """It made results NaN in a trace, and was refused elsewhere."""
    q, k, v = orthogonal(20.0)
    may = torch.arange(LENGTH) < LENGTH - 50
    wanted = taylor.attend(q, k, v, causal=causal, mask=may)
    k[~may] = size
    assert torch.equal(taylor.attend(q, k, v, causal=causal, mask=may), wanted)
    fused = vmap(lambda *given: taylor.attend(*given, causal=causal, mask=may))(q[None], k[None], v[None])[0]
    assert torch.allclose(fused, wanted, atol=1e-5)


def test_no_runs_at_all() -> None:
    given = [each.expand(0, *each.shape) for each in orthogonal(20.0)]
    assert vmap(lambda *one: taylor.attend(*one, form="parallel"))(*given).shape == (0, LENGTH, 4)


def test_the_normaliser_of_a_step_is_at_least_what_its_keys_allow() -> None:
    q, k, v = orthogonal(1e5)
    state = taylor.init_state(D, 4)
    for t in range(100):
        out, state = taylor.step(state, q[t], k[t], v[t], scale=1.0)
        assert out.isfinite().all()


@given(st.sampled_from([1, 3, 5, 7]), st.floats(-30, 30))
def test_no_weight_is_below_the_least(terms: int, x: float) -> None:
    assert float(polynomial(torch.tensor(x, dtype=torch.float64), terms)) >= least(terms) * (1 - 1e-9)


@pytest.mark.parametrize("terms", [3, 5])
def test_the_bound_holds(terms: int) -> None:
    """Off by less than the bound says, and by more than a hundredth of it."""
    for size in (30.0, 100.0, 300.0):
        q, k, v = orthogonal(size)
        how = How(terms, 1.0, False, 256, torch.float32)
        limit = float(bound(q, k, None, how))
        off = float((unguarded(q, k, v, terms) - reference(q, k, v, terms, False)).abs().max())
        if limit < FAR:
            assert limit / 1000 < off < limit * float(v.abs().max())
    assert LIMIT < FAR
    assert torch.isfinite(naive(q, k, v, None, how)).all()
