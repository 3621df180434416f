from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor
from torch.func import vmap

from tiebreak.layers.dropout import _COUNTERS, Dropout
from tiebreak.layers.functional_dropout import FunctionKey, KeyedFunctions
from tiebreak.layers.keyed_draws import DIGITS, DRAWS, LARGEST_SPAN, SELU

COUNT = 20_000
X = torch.linspace(-1, 1, 24).view(2, 3, 4)
P = torch.tensor([[0.1, 0.0, 0.6, 0.3], [0.25, 0.25, 0.25, 0.25]])

CALLS: dict[str, Callable[[], Tensor]] = {  # each as torch allows it
    "rand": lambda: torch.rand(2, 3),
    "rand size": lambda: torch.rand((2, 3), dtype=torch.float64),
    "rand keyword": lambda: torch.rand(size=(2, 3), device="cpu", requires_grad=True),
    "rand none": lambda: torch.rand(()),
    "rand of NumPy's numbers": lambda: torch.rand(np.int64(3)),  # type: ignore[call-overload]
    "rand empty": lambda: torch.rand(0, 3),
    "randn": lambda: torch.randn([4], dtype=torch.bfloat16),
    "rand_like": lambda: torch.rand_like(X),
    "randn_like": lambda: torch.randn_like(X, dtype=torch.float16),
    "randint": lambda: torch.randint(5, (3,)),
    "randint from": lambda: torch.randint(-2, 5, (3, 2), dtype=torch.int32),
    "randint keywords": lambda: torch.randint(low=2, high=5, size=(3,)),
    "randint_like": lambda: torch.randint_like(X, 3),
    "randint_like from": lambda: torch.randint_like(X.long(), 3, 9),
    "randperm": lambda: torch.randperm(7),
    "bernoulli": lambda: torch.bernoulli(P),
    "bernoulli p": lambda: torch.bernoulli(X, 0.3),
    "bernoulli method": P.bernoulli,
    "bernoulli_": lambda: torch.empty(2, 1).bernoulli_(0.7),
    "bernoulli_ of p": lambda: torch.zeros(2, 4).bernoulli_(P),
    "bernoulli_ of booleans": lambda: torch.zeros(4, dtype=torch.bool).bernoulli_(),
    "uniform_": lambda: X.clone().uniform_(-2, 3),
    "uniform_ keywords": lambda: X.clone().uniform_(to=3.0),
    "normal_": lambda: X.clone().normal_(std=0.1),
    "exponential_": lambda: X.clone().exponential_(2.0),
    "normal": lambda: torch.normal(X, X.abs()),
    "normal of number": lambda: torch.normal(0.5, X.abs()),
    "normal of mean": lambda: torch.normal(X),
    "normal size": lambda: torch.normal(1.0, 2.0, (3, 2)),
    "multinomial": lambda: torch.multinomial(P, 3),
    "multinomial replaced": lambda: P.multinomial(6, replacement=True),
    "multinomial row": lambda: torch.multinomial(P[0], 2),
    "gumbel": lambda: F.gumbel_softmax(X, tau=0.5),
    "gumbel hard": lambda: F.gumbel_softmax(X, hard=True, dim=1),
    "rrelu": lambda: F.rrelu(X, training=True),
    "rrelu in place": lambda: F.rrelu(X.clone(), 0.1, 0.2, True, True),
    "dropout1d": lambda: F.dropout1d(X, 0.5),
    "dropout1d row": lambda: F.dropout1d(X[0]),
    "dropout2d": lambda: F.dropout2d(X[..., None].clone(), inplace=True),
    "dropout3d": lambda: F.dropout3d(X[None, ..., None], 0.2),
    "alpha": lambda: F.alpha_dropout(X, 0.3, training=True),
    "feature alpha": lambda: F.feature_alpha_dropout(X, 0.3, True),
}


SHARED = {  # they change a tensor that all runs share, which cannot be mapped
    "bernoulli_ of p", "bernoulli_ of booleans", "uniform_", "uniform_ keywords", "normal_", "exponential_",
    "rrelu in place", "dropout2d",
}  # fmt: skip


def keyed(call: Callable[[], Any], key: Tensor | int = 7) -> Any:
    """What a call gives in a pass with that key."""
    layer = FunctionKey()
    layer.key = torch.as_tensor(key, dtype=torch.int32)
    with KeyedFunctions(layer) as mode:
        found = call()
    assert mode.count
    return found


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_what_torch_gives_but_the_numbers_without_the_generator(name: str) -> None:
    before = torch.get_rng_state()
    found, again, *others = [keyed(CALLS[name], key) for key in (7, 7, *range(8, 20))]
    assert torch.equal(torch.get_rng_state(), before)
    wanted = CALLS[name]()
    assert (found.shape, found.dtype, found.requires_grad) == (wanted.shape, wanted.dtype, wanted.requires_grad)
    assert torch.equal(found, again)
    assert found.numel() == 0 or not all(torch.equal(found, other) for other in others)


@pytest.mark.parametrize("name", sorted(CALLS.keys() - SHARED - {"rand keyword"}))
def test_runs_that_are_mapped_over_draw_what_each_draws_alone(name: str) -> None:
    keys = torch.tensor([3, -4, 5], dtype=torch.int32)
    found = vmap(lambda key: keyed(CALLS[name], key), randomness="error")(keys)
    torch.testing.assert_close(found, torch.stack([keyed(CALLS[name], key) for key in keys]))


def test_every_function_is_called_by_a_test() -> None:
    called: set[Any] = set()

    class Listens(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            called.add(func)
            return func(*args, **(kwargs or {}))

    with Listens():
        for call in CALLS.values():
            call()
    assert DRAWS.keys() <= called


@pytest.mark.parametrize(
    ("call", "law"),
    [
        (lambda: torch.rand(COUNT), stats.uniform()),
        (lambda: torch.rand(COUNT, dtype=torch.float64), stats.uniform()),
        (lambda: torch.randn(COUNT), stats.norm()),
        (lambda: torch.randn(COUNT, dtype=torch.float64), stats.norm()),
        (lambda: torch.empty(COUNT).exponential_(2.0), stats.expon(scale=0.5)),
        (lambda: torch.empty(COUNT).uniform_(-2, 3), stats.uniform(-2, 5)),
        (lambda: torch.empty(COUNT).normal_(1, 3), stats.norm(1, 3)),
        (lambda: torch.normal(torch.ones(COUNT), 2.0), stats.norm(1, 2)),
    ],
)
@pytest.mark.parametrize("key", [0, 1, -1, 12345])
def test_the_distribution_is_torchs(call: Callable[[], Tensor], law: Any, key: int) -> None:
    assert stats.kstest(keyed(call, key).double().numpy(), law.cdf).pvalue > 1e-4


@pytest.mark.parametrize("key", range(4))
def test_consecutive_calls_and_neighbours_are_not_correlated(key: int) -> None:
    one, two = keyed(lambda: (torch.randn(COUNT), torch.randn(COUNT)), key)
    for a, b in ((one, two), (one[1:], one[:-1]), (one[: COUNT // 2], one[COUNT // 2 :]), (one**2, two**2)):
        assert abs(np.corrcoef(a.numpy(), b.numpy())[0, 1]) < 5 / math.sqrt(len(a))


@pytest.mark.parametrize("dtype", DIGITS)
def test_a_uniform_number_is_below_1_in_every_type(dtype: torch.dtype) -> None:
    found = keyed(lambda: torch.rand(200_000, dtype=dtype))
    assert found.dtype == dtype
    assert 0 <= found.min() < found.max() < 1
    assert torch.isfinite(keyed(lambda: torch.randn(200_000, dtype=dtype))).all()


@settings(max_examples=50, deadline=None)
@given(low=st.integers(-(2**40), 2**40), span=st.integers(1, LARGEST_SPAN), key=st.integers(-(2**31), 2**31 - 1))
def test_whole_numbers_are_in_their_range(low: int, span: int, key: int) -> None:
    found = keyed(lambda: torch.randint(low, low + span, (100,)), key)
    assert low <= int(found.min()) <= int(found.max()) < low + span


def test_whole_numbers_are_equally_frequent_and_too_wide_ranges_are_left_to_torch() -> None:
    found = keyed(lambda: torch.randint(6, (COUNT,)))
    assert stats.chisquare(found.bincount(minlength=6).numpy()).pvalue > 1e-4
    before = torch.get_rng_state()
    keyed(lambda: torch.randint(2**40, (3,)))
    assert not torch.equal(torch.get_rng_state(), before)


@settings(max_examples=30, deadline=None)
@given(n=st.integers(0, 300), key=st.integers(-(2**31), 2**31 - 1))
def test_a_permutation_has_each_number_once(n: int, key: int) -> None:
    assert keyed(lambda: torch.randperm(n), key).sort().values.tolist() == list(range(n))


def test_samples_follow_their_shares_and_those_without_replacement_differ() -> None:
    shares = torch.tensor([0.5, 0.0, 0.2, 0.3])
    many = keyed(lambda: torch.multinomial(shares, COUNT, replacement=True)).bincount(minlength=4)
    assert many[1] == 0
    assert stats.chisquare(many[[0, 2, 3]].numpy(), COUNT * shares[[0, 2, 3]].double().numpy()).pvalue > 1e-4
    rows = keyed(lambda: torch.multinomial(shares.expand(COUNT, 4), 3))
    assert rows.sort(dim=1).values.unique(dim=0).tolist() == [[0, 2, 3]]
    first = rows[:, 0].bincount(minlength=4)[[0, 2, 3]]
    assert stats.chisquare(first.numpy(), COUNT * shares[[0, 2, 3]].double().numpy()).pvalue > 1e-4


@pytest.mark.parametrize("shape", [(40, 50, 3), (40, 50, 3, 2), (40, 50, 2, 3, 2)])
def test_channel_dropout_drops_whole_channels(shape: tuple[int, ...]) -> None:
    drop = (F.dropout1d, F.dropout2d, F.dropout3d)[len(shape) - 3]
    found = keyed(lambda: drop(torch.ones(shape), 0.3)).flatten(2)
    assert found.unique().tolist() == pytest.approx([0, 1 / 0.7])
    assert torch.equal(found.amin(dim=2), found.amax(dim=2))
    assert abs(float((found[..., 0] == 0).float().mean()) - 0.3) < 0.05


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_alpha_dropout_keeps_mean_and_variance(p: float) -> None:
    found = keyed(lambda: F.alpha_dropout(torch.randn(COUNT), p, training=True))
    assert abs(float(found.mean())) < 0.05
    assert abs(float(found.std()) - 1) < 0.05
    a = ((SELU**2 * p + 1) * (1 - p)) ** -0.5
    dropped = a * (-SELU + SELU * p)
    share = torch.isclose(found, torch.tensor(dropped)).float().mean()
    assert abs(float(share) - p) < 0.02


def test_the_gradient_of_the_hard_form_is_that_of_the_soft_one() -> None:
    logits = X.clone().requires_grad_()
    weights = torch.randn(X.shape, generator=torch.Generator().manual_seed(0))
    gradients: list[Tensor] = []
    for hard in (False, True):
        found = keyed(partial(F.gumbel_softmax, logits, 0.5, hard))
        gradients += torch.autograd.grad((found * weights).sum(), logits)
        if hard:
            assert set(found.unique().tolist()) == {0.0, 1.0}
    torch.testing.assert_close(*gradients)


def test_a_generator_of_the_users_own_is_left_alone() -> None:
    generator = torch.Generator().manual_seed(1)
    found = keyed(lambda: (torch.rand(1), torch.rand(3, generator=generator))[1])
    assert torch.equal(found, torch.rand(3, generator=torch.Generator().manual_seed(1)))


@pytest.mark.parametrize("call", [lambda: torch.empty(3).bernoulli_(1.5), lambda: F.dropout2d(X[None], -0.1)])
def test_a_probability_outside_of_zero_to_one_is_refused(call: Callable[[], Tensor]) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        keyed(call)


def test_many_samples_with_replacement_take_memory_for_samples_and_shares_not_for_their_product() -> None:
    found = keyed(lambda: torch.multinomial(torch.ones(3001), 1999, replacement=True))
    assert found.unique().numel() > 1000
    assert all(count != 3001 * 1999 for count, _ in _COUNTERS)


@pytest.mark.parametrize("call", [lambda: torch.randn(3, dtype=torch.complex64), lambda: torch.randn_like(X + 0j)])
def test_numbers_of_a_type_that_is_not_drawn_here_are_left_to_torch(call: Callable[[], Tensor]) -> None:
    before = torch.get_rng_state()
    assert keyed(call).is_complex()
    assert not torch.equal(torch.get_rng_state(), before)
    with pytest.raises(RuntimeError, match="not implemented for 'Long'"):
        keyed(lambda: torch.rand_like(torch.arange(3)))


@pytest.mark.parametrize(
    "call",
    [torch.rand_like, lambda row: torch.empty(4).bernoulli_() + row, lambda row: row.new(4).normal_(), F.dropout],
)
def test_rows_of_a_users_own_vmap_draw_apart_where_it_says_so(call: Callable[[Tensor], Tensor]) -> None:
    rows = torch.ones(50, 4)
    found = keyed(lambda: vmap(call, randomness="different")(rows))
    assert len(found.unique(dim=0)) > 5
    same = keyed(lambda: vmap(call, randomness="same")(rows))
    assert len(same.unique(dim=0)) == 1
    keys = torch.tensor([3, 4], dtype=torch.int32)
    runs = vmap(lambda key: keyed(lambda: vmap(call, randomness="different")(rows), key))(keys)
    torch.testing.assert_close(
        runs, torch.stack([keyed(lambda: vmap(call, randomness="different")(rows), key) for key in keys])
    )


def test_rows_of_a_users_own_vmap_have_masks_of_their_own() -> None:
    found = vmap(Dropout(0.5), randomness="different")(torch.ones(50, 4))
    assert len(found.unique(dim=0)) > 5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("p", [0.1, 0.9])
def test_dropout_of_rounded_numbers_has_its_rate(dtype: torch.dtype, p: float) -> None:
    ones = torch.ones(400, 500, dtype=dtype)
    for call in (lambda: F.dropout(ones, p), lambda: F.dropout1d(ones[..., None], p)):
        found = keyed(call)
        assert found.dtype == dtype
        assert abs(float((found == 0).double().mean()) - p) < 0.002
        assert float(found.max()) == pytest.approx(1 / (1 - p), rel=8 * float(torch.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("inplace", [False, True])
def test_dropout_of_rounded_numbers_is_rounded_at_the_end(dtype: torch.dtype, inplace: bool) -> None:
    """As torch's. In bfloat16 1 / 0.9 is 1.109, so that multiplying by it would lower every mean."""
    x = torch.linspace(1, 2, 1000).to(dtype)
    found = keyed(lambda: F.dropout(x.clone(), 0.1, inplace=inplace))
    assert found.dtype == dtype
    kept = found != 0
    wanted = (x[kept].double() / 0.9).to(dtype)
    torch.testing.assert_close(found[kept], wanted, rtol=float(torch.finfo(dtype).eps), atol=0)
    assert abs(float((found.double() * 0.9 / x.double())[kept].mean()) - 1) < 2e-4


def test_what_is_kept_of_a_draw_belongs_to_no_transform() -> None:
    count = 12_347
    torch.func.grad(lambda x: (x * keyed(lambda: torch.rand(count))).sum())(torch.ones(()))
    (kept,) = (value for (size, _), value in _COUNTERS.items() if size == count)
    assert not torch._C._functorch.is_gradtrackingtensor(kept)
