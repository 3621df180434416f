from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.func import grad, jacrev, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from tiebreak.errors import TiebreakError
from tiebreak.layers import attention, taylor, taylor_checks, taylor_forms
from tiebreak.layers.taylor import attend, feature_size, features, init_state, step, step_in_place

CAUSAL = {True: ("auto", "naive", "chunked", "recurrent"), False: ("auto", "naive", "parallel")}


@pytest.fixture(autouse=True)
def _warned() -> Iterator[None]:
    """Even numbers of terms have warned already, except where that is tested."""
    with patch.object(taylor_checks, "_warned", {"even"}):
        yield


def make(
    lead: tuple[int, ...], queries: int, keys: int, width: int, values: int, dtype: torch.dtype = torch.float64
) -> list[Tensor]:
    torch.manual_seed(0)
    shapes = ((*lead, queries, width), (*lead, keys, width), (*lead, keys, values))
    return [torch.randn(shape, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


def by_hand(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, terms: int, scale: float) -> Tensor:
    """One query at a time, over the keys that it may look at, term by term."""
    may = torch.ones(*q.shape[:-1], k.shape[-2], dtype=torch.bool)
    may = may if mask is None else may & mask.unsqueeze(-2)
    may = may.tril() if causal else may
    rows = []
    for place in itertools.product(*(range(size) for size in q.shape[:-1])):
        row, lead = may[place], place[:-1]
        scores = scale * k[lead][row] @ q[place]
        weights = sum(scores**n / math.factorial(n) for n in range(terms)) * torch.ones_like(scores)
        rows.append(weights @ v[lead][row] / weights.sum() if row.any() else v[lead][0] * 0)
    return torch.stack(rows).view(*q.shape[:-1], v.shape[-1])


def value_and_gradients(out: Tensor, given: list[Tensor]) -> list[Tensor]:
    loss = (out * torch.arange(1, out.numel() + 1).view_as(out).sin().to(out.dtype)).sum()
    return [out.detach(), *torch.autograd.grad(loss, given, materialize_grads=True)]


def distance(one: Tensor, two: Tensor) -> float:
    """The largest difference, relative to the largest entry where that is above 1."""
    assert one.shape == two.shape
    one, two = one.detach().double(), two.detach().double()
    return float((one - two).abs().max() / two.abs().max().clamp(min=1))


@given(st.integers(1, 6), st.integers(1, 5))
@settings(deadline=None, max_examples=30)
def test_features_are_one_per_multiset_and_multiply_to_the_polynomial(d: int, terms: int) -> None:
    q, k = (torch.randn(3, d, dtype=torch.float64) for _ in range(2))
    expected = sum((q @ k.mT) ** n / math.factorial(n) for n in range(terms))
    for symmetric in (True, False):
        phi = features(q, terms, symmetric)
        assert phi.shape == (3, feature_size(d, terms, symmetric))
        assert torch.allclose(phi @ features(k, terms, symmetric).mT, expected * torch.ones(3, 3), atol=1e-12)
    columns = [
        (q[:, list(chosen)].prod(dim=1) / math.sqrt(math.prod(map(math.factorial, Counter(chosen).values()))))
        for n in range(terms)
        for chosen in itertools.combinations_with_replacement(range(d), n)
    ]
    assert torch.allclose(features(q, terms), torch.stack(columns, dim=1), atol=1e-12)


def test_feature_sizes_of_the_reports() -> None:
    for d in (8, 16, 64):
        assert feature_size(d, 3) == 1 + d + d * (d + 1) // 2
        assert feature_size(d, 3, symmetric=False) == 1 + d + d * d
    assert features(torch.tensor([2.0, 3.0]), 3).tolist() == pytest.approx([1, 2, 3, 4 / 2**0.5, 6, 9 / 2**0.5])
    assert features(torch.ones(2, 4, 5, dtype=torch.bfloat16), 3).dtype == torch.bfloat16


# The same examples every time: in float32 a rare one of five terms is off by 1.1e-5, as its rounding bound allows.
@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    st.sampled_from([(), (2,), (3, 1), (2, 3), (1, 1)]),
    st.tuples(st.integers(1, 13), st.integers(1, 13), st.integers(1, 5), st.integers(1, 5)),
    st.integers(1, 5),
    st.sampled_from(["none", "own", "shared"]),
    st.booleans(),
    st.sampled_from([None, 1.0, 0.3]),
    st.integers(1, 6),
)
def test_every_form_is_the_formula_with_its_gradients(
    lead: tuple[int, ...],
    sizes: tuple[int, int, int, int],
    terms: int,
    kind: str,
    causal: bool,
    scale: float | None,
    chunk: int,
) -> None:
    queries, keys, width, values = sizes
    given = make(lead, keys if causal else queries, keys, width, values)
    if terms % 2 == 0:  # keep the weights away from zero, where a quotient means nothing
        given = [(each.detach().abs() + 0.1).requires_grad_() for each in given]
    mask = None if kind == "none" else torch.rand(*(lead if kind == "own" else ()), keys) < 0.6
    s = width**-0.5 if scale is None else scale
    q, k, v = given
    expected = value_and_gradients(by_hand(q, k, v, mask, causal, terms, s), given)
    small = [each.detach().float().requires_grad_() for each in given]
    # Few and small chunks and pieces, and no way around the features.
    with (
        patch.object(taylor, "_chunk_size", lambda size, causal: chunk),
        patch.object(taylor, "_short", lambda *sizes: False),
        patch.object(taylor_forms, "ROOM", 40 * chunk),
    ):
        for form in CAUSAL[causal]:
            found = attend(q, k, v, terms=terms, causal=causal, scale=scale, mask=mask, form=form)
            for one, two in zip(value_and_gradients(found, given), expected, strict=True):
                assert distance(one, two) < 1e-10
            found = attend(*small, terms=terms, causal=causal, scale=scale, mask=mask, form=form)
            assert found.dtype == torch.float32
            for one, two in zip(value_and_gradients(found, small), expected, strict=True):
                assert distance(one, two) < 1e-5


@pytest.mark.parametrize(("width", "terms"), [(8, 5), (16, 4), (16, 3), (33, 3), (64, 3), (64, 1)])
@pytest.mark.parametrize("causal", [False, True])
def test_long_odd_sequences_in_real_chunks(width: int, terms: int, causal: bool) -> None:
    given = make((2,), 601, 601, width, 7)
    if terms % 2 == 0:
        given = [each.detach().abs().requires_grad_() for each in given]
    mask = torch.rand(2, 601) < 0.8
    reference = value_and_gradients(attend(*given, terms=terms, causal=causal, mask=mask, form="naive"), given)
    fast = "chunked" if causal else "parallel"
    for dtype, limit in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        own = [each.detach().to(dtype).requires_grad_() for each in given]
        found = value_and_gradients(attend(*own, terms=terms, causal=causal, mask=mask, form=fast), own)
        for one, two in zip(found, reference, strict=True):
            assert distance(one, two) < limit


@pytest.mark.parametrize("causal", [False, True])
def test_very_many_features_are_summed_in_float64(causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taylor_forms, "MANY", 10)
    given = make((2,), 601, 601, 4, 3, torch.float32)
    exact = [each.detach().double().requires_grad_() for each in given]
    reference = value_and_gradients(attend(*exact, causal=causal, form="naive"), exact)
    for form in CAUSAL[causal][2:]:
        found = value_and_gradients(attend(*given, causal=causal, form=form), given)
        assert {each.dtype for each in found} == {torch.float32}
        assert all(distance(one, two) < 2e-7 for one, two in zip(found, reference, strict=True))
    assert init_state(4, 3).dtype == torch.float64


@pytest.mark.parametrize("causal", [False, True])
def test_bfloat16_in_and_out_with_sums_in_float32(causal: bool) -> None:
    given = make((2,), 700, 700, 8, 5, torch.bfloat16)
    exact = [each.detach().double().requires_grad_() for each in given]
    reference = value_and_gradients(attend(*exact, causal=causal, form="naive"), exact)
    for form in CAUSAL[causal]:
        found = value_and_gradients(attend(*given, causal=causal, form=form), given)
        assert {each.dtype for each in found} == {torch.bfloat16}
        assert distance(found[0], reference[0]) < 2**-8  # the rounding of the result, not of 700 sums
        assert all(distance(one, two) < 2**-5 for one, two in zip(found[1:], reference[1:], strict=True))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_query_that_may_look_at_nothing_gets_zeros(causal: bool, dtype: torch.dtype) -> None:
    given = make((2,), 7, 7, 3, 4, dtype)
    with torch.no_grad():  # what is masked may hold anything
        given[1][0] = math.nan
        given[2][1, :3] = math.inf
    mask = torch.tensor([[False] * 7, [False] * 3 + [True] * 4])
    for form in CAUSAL[causal]:
        with (
            patch.object(taylor, "_chunk_size", lambda size, causal: 2),
            patch.object(taylor, "_short", lambda *_: False),
        ):
            out, *gradients = value_and_gradients(attend(*given, causal=causal, mask=mask, form=form), given)
        assert not out[0].any()
        assert bool(out[1, :3].any()) is not causal
        assert out[1, 3:].all()
        assert all(gradient.isfinite().all() for gradient in gradients)
        assert all(not gradient[0].any() for gradient in gradients)
        assert not gradients[1][1, :3].any()
        assert not gradients[2][1, :3].any()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [5, 300])
def test_runs_together_are_each_run_alone_vmapped_and_traced(masked: bool, causal: bool, length: int) -> None:
    runs, lead = 3, (2, 1)
    q, k, v = (each.detach() for each in make((runs, *lead), length, length, 4, 6))
    mask = torch.rand(*lead, length) < 0.6 if masked else None

    def loss(q: Tensor, k: Tensor, v: Tensor, weight: Tensor) -> Tensor:
        return (attend(q, k, v, mask=mask, causal=causal).sin() * weight).sum()

    weights = torch.randn(runs, dtype=torch.float64)
    each_run = vmap(grad(loss, argnums=(0, 1, 2)))
    traced = make_fx(each_run)(q, k, v, weights)
    for together in (each_run(q, k, v, weights), traced(q, k, v, weights)):
        for run in range(runs):
            own = [each[run].clone().requires_grad_() for each in (q, k, v)]
            alone = torch.autograd.grad(loss(own[0], own[1], own[2], weights[run]), own)
            assert all(torch.allclose(a[run], b, rtol=0, atol=1e-12) for a, b in zip(together, alone, strict=True))
    alone = make_fx(lambda q: attend(q, q, q, causal=causal))(q)(q)
    assert torch.allclose(alone, attend(q, q, q, causal=causal), rtol=0, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_have_gradients(causal: bool) -> None:
    q, k, v = make((), 7, 7, 2, 1)
    v = v.detach()

    def total(q: Tensor) -> Tensor:
        return attend(q, k.detach(), v, causal=causal).sin().sum()

    def second(form: str) -> list[Tensor]:
        first = torch.autograd.grad(attend(q, k, v, causal=causal, form=form).sin().sum(), (q, k), create_graph=True)
        return [*first, *torch.autograd.grad(first[0].square().sum() + first[1].sin().sum(), (q, k))]

    expected = second("naive")
    square = jacrev(grad(total))(q.detach())
    with (
        patch.object(taylor, "_chunk_size", lambda size, causal: 3),
        patch.object(taylor, "_short", lambda *_: False),
    ):
        found = second("auto")
        assert torch.allclose(jacrev(grad(total))(q.detach()), square, atol=1e-12)
    assert all(distance(one, two) < 1e-10 for one, two in zip(found, expected, strict=True))


def test_streaming_gives_the_same_with_a_state_that_never_grows() -> None:
    q, k, v = make((2,), 40, 40, 3, 4, torch.float32)
    mask = torch.rand(2, 40) < 0.7
    state = init_state(3, 4, lead=(2,), terms=3)
    size = state.shape
    results = []
    for t in range(40):
        before = state.clone()
        out, after = step(state, q[:, t], k[:, t], v[:, t], mask=mask[:, t])
        assert torch.equal(state, before)  # a state can be kept and gone back to
        state = after
        assert state.shape == size
        results.append(out)
    assert distance(torch.stack(results, dim=1), attend(q, k, v, causal=True, mask=mask, form="naive")) < 1e-5
    assert init_state(3, 4, dtype=torch.bfloat16).dtype == torch.float32
    alone = vmap(lambda s, q, k, v: step(s, q, k, v)[0])(state, q[:, 0], k[:, 0], v[:, 0])
    assert torch.allclose(alone, step(state, q[:, 0], k[:, 0], v[:, 0])[0], atol=1e-6)


def test_auto_makes_no_features_where_they_do_not_pay() -> None:
    with patch.object(taylor, "scan", side_effect=AssertionError), patch.object(taylor, "Scan", None):
        attend(*make((), 256, 256, 4, 4), causal=True)
        attend(*make((), 1, 5000, 4, 4))
        attend(*make((), 900, 900, 64, 4))


def test_even_terms_warn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taylor_checks, "_warned", set())
    q, k, v = make((), 3, 3, 2, 2)
    attend(q, k, v, terms=3)
    with pytest.warns(UserWarning, match="terms = 4 is even: weights can turn negative"):
        attend(q, k, v, terms=4)
    attend(q, k, v, terms=2)


def test_three_terms_weigh_at_least_half() -> None:
    x = torch.linspace(-9, 9, 1801, dtype=torch.float64)
    assert taylor_forms.polynomial(x, 3).min() == pytest.approx(0.5)
    assert float(taylor_forms.polynomial(torch.tensor(1.0), 3)) / math.e - 1 == pytest.approx(-0.08, abs=0.005)
    assert float(taylor_forms.polynomial(torch.tensor(3.0), 3)) / math.e**3 - 1 == pytest.approx(-0.58, abs=0.005)
    q, k, v = make((), 50, 50, 8, 3)
    assert distance(attend(q, k, v, terms=15), attention.attend(q, k, v)) < 1e-3


BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: attend(torch.ones(3, 2), torch.ones(4, 2), torch.ones(5, 2)), "one value for each key"),
    (lambda: attend(torch.ones(3, 2), torch.ones(4, 3), torch.ones(4, 2)), "q and k need the same size"),
    (lambda: attend(torch.ones(3, 0), torch.ones(4, 0), torch.ones(4, 2)), "q and k need the same size of one or more"),
    (lambda: attend(torch.ones(0, 2), torch.ones(4, 2), torch.ones(4, 2)), "a sequence of length zero"),
    (lambda: attend(torch.ones(3, 2), torch.ones(0, 2), torch.ones(0, 2)), "a sequence of length zero"),
    (lambda: attend(torch.ones(2, 3, 2), torch.ones(3, 3, 2), torch.ones(2, 3, 2)), "the same leading axes"),
    (lambda: attend(torch.ones(2), torch.ones(2), torch.ones(2)), r"before \[length, size\]"),
    (lambda: attend(torch.ones(3, 2).long(), torch.ones(3, 2), torch.ones(3, 2)), r"q is torch.int64.*q.float\(\)"),
    (lambda: attend(torch.ones(3, 2), torch.ones(3, 2).double(), torch.ones(3, 2)), "convert them to one type"),
    (lambda: attend(torch.ones(3, 2), torch.ones(4, 2), torch.ones(4, 2), causal=True), "as many queries as keys"),
    (lambda: attend(*[torch.ones(3, 2)] * 3, terms=0), "terms = 0 leaves nothing"),
    (lambda: attend(*[torch.ones(3, 2)] * 3, form="chunky"), "did you mean 'chunked'"),
    (lambda: attend(*[torch.ones(3, 2)] * 3, form="chunked"), 'does not go with causal=False: use form="parallel"'),
    (lambda: attend(*[torch.ones(3, 2)] * 3, form="parallel", causal=True), 'causal=True: use form="chunked"'),
    (lambda: attend(*[torch.ones(3, 2)] * 3, mask=torch.ones(4).bool()), r"keys of \(3,\) was expected, not \(4,\)"),
    (lambda: attend(*[torch.ones(3, 2)] * 3, mask=torch.ones(3)), "make it boolean"),
    (
        lambda: attend(*[torch.ones(3, 256)] * 3, terms=7),
        r"D = 256 with terms = 7 \(4\S+ for each token\).* 1,306,128 GB and there",
    ),
    (lambda: features(torch.ones(9, 256), 9), r"GB and there are \d+ GB: use fewer terms"),
    (lambda: init_state(256, 4, terms=9), r"GB and there are \d+ GB: use fewer terms"),
    (lambda: features(torch.ones(9, 2).int(), 3), "x is torch.int32"),
    (lambda: feature_size(0, 3), "a vector of 0 entries"),
    (lambda: feature_size(3, -1), "terms = -1"),
    (
        lambda: step(init_state(3, 2), *[torch.ones(2)] * 3),
        r"need a state of \(6, 3\), not \(10, 3\).*init_state\(2, 2",
    ),
    (lambda: step(init_state(2, 2, lead=(4,)), *[torch.ones(3, 2)] * 3), "need the same leading axes"),
    (lambda: step(init_state(2, 2), *[torch.tensor(1.0)] * 3), r"a token needs q, k and v of \[..., size\]"),
    (lambda: step(init_state(2, 2).half(), *[torch.ones(2)] * 3), "the state is torch.float16, and sums need float32"),
    (lambda: step(init_state(2, 2).int(), *[torch.ones(2)] * 3), "the state is torch.int32"),
    (lambda: step(init_state(2, 2), *[torch.ones(2)] * 3, mask=torch.ones(())), "make it boolean"),
    (
        lambda: step_in_place(init_state(2, 2), *[torch.ones(3, 2)] * 3),
        r"axes \(\) cannot take tokens of \(3,\)",
    ),
    (lambda: attend(*[torch.ones(3, 2)] * 3, scale=torch.tensor(0.3)), r"no gradient: pass q \* scale"),  # type: ignore[arg-type]
    (lambda: attend(*[torch.ones(3, 2)] * 3, scale=math.nan), "scale = nan is no finite number"),
    (lambda: attend(*[torch.ones(3, 2)] * 3, scale="x"), "scale = 'x' is no finite number"),  # type: ignore[arg-type]
    (lambda: attend(*[torch.ones(3, 2)] * 3, terms=3.0), "terms = 3.0 is no whole number"),  # type: ignore[arg-type]
    (lambda: attend(*[torch.ones(3, 2)] * 3, terms=41), "terms = 41 is more than 20"),
    (lambda: attend(*[torch.ones(3, 2)] * 3, form=None), "form None is unknown"),  # type: ignore[arg-type]
    (lambda: attend(*[torch.ones(3, 2)] * 3, mask=True), "the mask is of type bool"),  # type: ignore[arg-type]
    (lambda: attend(*[torch.ones(3, 2).numpy()] * 3), "q is of type ndarray"),  # type: ignore[arg-type]
    (lambda: attend(*[torch.ones(3, 2).to(torch.float8_e4m3fn)] * 3), "q is torch.float8_e4m3fn"),
    (lambda: init_state(8, -1), "a state of -1 values"),
    (lambda: init_state(8, 1, lead=3), "leading axes 3 cannot be"),  # type: ignore[arg-type]
    (lambda: features(torch.tensor(1.0), 3), "a single number has no features"),
    (lambda: step(init_state(2, 2), torch.ones(2), torch.ones(2).half(), torch.ones(2)), "convert them to one type"),
    (
        lambda: step_in_place(init_state(2, 2).expand(3, 6, 3), *[torch.ones(3, 2)] * 3),
        "an expanded state .* call state.clone",
    ),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_input_is_named(number: int) -> None:
    call, message = BAD[number]
    with pytest.raises(TiebreakError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_in_place_is_step() -> None:
    q, k, v = (torch.randn(2, width) for width in (4, 4, 3))
    state = init_state(4, 3, lead=(2,))
    wanted, after = step(state, q, k, v)
    assert torch.equal(step_in_place(state, q, k, v), wanted)
    assert torch.equal(state, after)


@pytest.mark.parametrize("form", ["auto", "naive", "parallel", "chunked", "recurrent"])
@pytest.mark.parametrize("lead", [(0, 2), (2, 0)])
def test_an_empty_batch_is_an_empty_result(form: str, lead: tuple[int, int]) -> None:
    given = make(lead, 600, 600, 4, 3)
    out = attend(*given, causal=form in ("chunked", "recurrent"), form=form)
    assert out.shape == (*lead, 600, 3)
    assert [each.shape for each in torch.autograd.grad(out.sum(), given)] == [each.shape for each in given]


def test_under_autocast_everything_is_float32_at_least() -> None:
    """A step multiplied in bfloat16 and was 0.4 % off."""
    q, k, v = make((2,), 30, 30, 8, 16)
    wanted = attend(q, k, v, causal=True, form="naive")
    for dtype, limit in ((torch.float32, 1e-5), (torch.float64, 1e-10)):
        given = [each.detach().to(dtype) for each in (q, k, v)]
        states = [init_state(8, 16, lead=(2,), dtype=dtype) for _ in range(2)]
        with torch.autocast("cpu", torch.bfloat16):
            results = [attend(given[0], given[1], given[2], causal=True)]
            tokens = []
            for t in range(30):
                out, states[0] = step(states[0], *(each[:, t] for each in given))
                tokens.append((out, step_in_place(states[1], *(each[:, t] for each in given))))
        results += [torch.stack(each, dim=1) for each in zip(*tokens, strict=True)]
        assert [each.dtype for each in results] == [dtype] * 3
        assert max(distance(each, wanted) for each in results) < limit


@pytest.mark.parametrize(("form", "length"), [("chunked", 300), ("parallel", 300), ("auto", 300), ("recurrent", 3)])
def test_every_form_compiles_whole(form: str, length: int) -> None:
    given = make((2,), length, length, 4, 3)
    call = partial(attend, causal=form in ("chunked", "recurrent"), form=form)
    torch._dynamo.reset()
    with patch.object(taylor_forms, "_known", {}), patch.object(taylor, "_short", lambda *_: False):
        found = value_and_gradients(torch.compile(call, fullgraph=True, backend="aot_eager")(*given), given)
    for one, two in zip(found, value_and_gradients(call(*given), given), strict=True):
        assert distance(one, two) < 1e-10


def test_values_of_no_width_keep_the_column_of_ones() -> None:
    q, k, v = torch.randn(2, 8), torch.randn(2, 8), torch.randn(2, 0)
    out, state = step(init_state(8, 0, lead=(2,)), q, k, v)
    assert (out.shape, state.shape) == ((2, 0), (2, 45, 1))
    assert step(state, q, k, v)[1].shape == state.shape


@pytest.mark.parametrize("dynamic", [False, True])
def test_another_width_compiles_whole_too(dynamic: bool) -> None:
    torch.compiler.reset()
    compiled = torch.compile(partial(attend, causal=True), backend="eager", fullgraph=True, dynamic=dynamic)
    for width in (8, 16):
        given = make((2,), 300, 300, width, 3)
        assert distance(compiled(*given), attend(*given, causal=True)) < 1e-5
    with torch.no_grad():
        compiled(*make((2,), 20, 20, 4, 3))
        assert torch.compile(partial(attend, terms=2), backend="eager", fullgraph=True)(*make((), 5, 5, 2, 2)).any()


def test_sizes_without_numbers() -> None:
    shapes = ((2, 300, 7), (2, 300, 7), (2, 300, 3))
    assert attend(*(torch.empty(shape, device="meta") for shape in shapes), causal=True).shape == shapes[2]
    attend(*(torch.randn(shape) for shape in shapes), causal=True)  # keeps the tables of this width
    with FakeTensorMode():
        assert attend(*(torch.empty(shape) for shape in shapes), causal=True).shape == shapes[2]


def test_a_forward_derivative_is_taken_or_refused_in_a_line() -> None:
    q, k, v = make((), 300, 300, 4, 3)
    taken = torch.func.jvp(lambda x: attend(x, k, v, causal=True), (q,), (torch.ones_like(q),))[1]
    wanted = torch.func.jvp(lambda x: attend(x, k, v, causal=True, form="naive"), (q,), (torch.ones_like(q),))[1]
    assert distance(taken, wanted) < 1e-4
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(q, torch.ones_like(q))  # type: ignore[no-untyped-call]
        with pytest.raises(TiebreakError, match=r"take it with torch.func.jvp"):
            attend(dual, k, v, causal=True)
