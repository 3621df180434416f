from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tiebreak.errors import TiebreakError
from tiebreak.layers.lstm import Lstm
from tiebreak.layers.rnn import use_plain_cells

SHAPES = [(False, 1), (True, 1), (False, 2), (True, 3)]  # bidirectional, layers


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """These products are too small to share out."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def pair(bidirectional: bool, layers: int, inputs: int = 5, hidden: int = 7) -> tuple[Lstm, nn.LSTM]:
    """Ours and torch's with the same numbers, in float64."""
    torch.manual_seed(0)
    ours = Lstm(inputs, hidden, bidirectional=bidirectional, layers=layers).double()
    theirs = nn.LSTM(inputs, hidden, layers, batch_first=True, bidirectional=bidirectional).double()
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def sample(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def everything(layer: nn.LSTM, result: tuple[Tensor, tuple[Tensor, Tensor]], leaves: list[Tensor]) -> list[Tensor]:
    """Outputs, state, and the gradients of a loss that looks at all of them differently."""
    outputs, state = result
    loss = sum((each * torch.arange(1, each.numel() + 1).view_as(each).sin()).sum() for each in (outputs, *state))
    assert isinstance(loss, Tensor)
    return [outputs, *state, *torch.autograd.grad(loss, [*layer.parameters(), *leaves])]


def assert_close(one: list[Tensor], two: list[Tensor], bound: float = 1e-12) -> None:
    for a, b in zip(one, two, strict=True):
        assert a.shape == b.shape
        assert float((a - b).detach().abs().max()) < bound


@pytest.mark.parametrize(("bidirectional", "layers"), SHAPES)
def test_names_order_and_initial_values_are_those_of_torch(bidirectional: bool, layers: int) -> None:
    torch.manual_seed(3)
    ours = Lstm(5, 7, bidirectional=bidirectional, layers=layers).state_dict()
    torch.manual_seed(3)
    theirs = nn.LSTM(5, 7, layers, bidirectional=bidirectional).state_dict()
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(("bidirectional", "layers"), SHAPES)
def test_both_forms_are_torchs_lstm(bidirectional: bool, layers: int, plain: bool) -> None:
    ours, theirs = pair(bidirectional, layers)
    ours.plain = plain
    x, h, c = sample(3, 6, 5), *(sample(layers * (1 + bidirectional), 3, 7) for _ in range(2))
    for state, leaves in ((None, [x]), ((h, c), [x, h, c])):
        assert_close(everything(ours, ours(x, state), leaves), everything(theirs, theirs(x, state), leaves))


@settings(deadline=None, max_examples=15)
@given(
    st.sampled_from(SHAPES),
    st.lists(st.integers(1, 6), min_size=1, max_size=5),
    st.integers(0, 2),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
)
def test_with_lengths_both_forms_are_torchs_lstm_on_packed_rows(
    shape: tuple[bool, int], lengths: list[int], more: int, sizes: tuple[int, int]
) -> None:
    ours, theirs = pair(*shape, *sizes)
    rows, time, states = len(lengths), max(lengths) + more, shape[1] * (1 + shape[0])
    x, h, c = sample(rows, time, sizes[0]), sample(states, rows, sizes[1]), sample(states, rows, sizes[1])
    packed = pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    outputs, last = theirs(packed, (h, c))
    outputs = pad_packed_sequence(outputs, batch_first=True, total_length=time)[0]
    expected = everything(theirs, (outputs, last), [x, h, c])
    for plain in (False, True):
        ours.plain = plain
        assert_close(everything(ours, ours(x, (h, c), torch.tensor(lengths)), [x, h, c]), expected)


@pytest.mark.parametrize("plain", [False, True])
def test_what_lies_in_the_padding_does_not_matter(plain: bool) -> None:
    layer = Lstm(2, 3, bidirectional=True, layers=2)
    layer.plain = plain
    x, lengths = torch.randn(4, 5, 2), torch.tensor([1, 5, 3, 4])
    other = torch.where(torch.arange(5)[:, None] < lengths[:, None, None], x, 1e3)
    one, two = layer(x, None, lengths), layer(other, None, lengths)
    assert torch.equal(one[0], two[0])
    assert all(torch.equal(a, b) for a, b in zip(one[1], two[1], strict=True))
    alone = layer(x[2:3, :3])[0]
    assert torch.allclose(one[0][2, :3], alone[0], atol=1e-6)
    assert not one[0][2, 3:].any()


@pytest.mark.parametrize("layers", [1, 2])
def test_cell_by_cell_is_the_whole_sequence(layers: int) -> None:
    layer, _ = pair(False, layers)
    x = sample(3, 4, 5)
    state = None
    outputs = []
    for step in range(4):
        output, state = layer.cell(x[:, step], state)
        outputs.append(output)
    assert state is not None
    assert_close(everything(layer, (torch.stack(outputs, 1), state), [x]), everything(layer, layer(x), [x]))


def test_a_bidirectional_layer_has_no_cell() -> None:
    with pytest.raises(TiebreakError, match="bidirectional"):
        Lstm(2, 3, bidirectional=True).cell(torch.zeros(1, 2))


@pytest.mark.parametrize("with_lengths", [False, True])
def test_runs_together_are_each_run_alone_vmapped_and_traced(with_lengths: bool) -> None:
    layers = [Lstm(3, 4, bidirectional=True).double() for _ in range(3)]
    params, _ = stack_module_state(layers)
    x = torch.randn(3, 5, 4, 3, dtype=torch.float64)
    lengths = torch.randint(1, 5, (3, 5)) if with_lengths else None

    def loss(params: dict[str, Tensor], x: Tensor, lengths: Tensor | None) -> Tensor:
        outputs, (_, memory) = functional_call(layers[0], params, (x, None, lengths))
        return outputs.square().sum() + memory.sin().sum()  # type: ignore[no-any-return]

    alone = []
    for run, layer in enumerate(layers):
        own: dict[str, Tensor] = dict(layer.named_parameters())
        value = loss(own, x[run], None if lengths is None else lengths[run])
        alone.append((dict(zip(own, torch.autograd.grad(value, list(own.values())), strict=True)), value.detach()))
    use_plain_cells(layers[0], True)
    step = vmap(grad_and_value(loss), in_dims=(0, 0, 0 if with_lengths else None))
    for together in (step(params, x, lengths), make_fx(step)(params, x, lengths)(params, x, lengths)):
        for run, (gradient, value) in enumerate(alone):
            assert torch.allclose(together[1][run], value, rtol=1e-12, atol=0)
            assert_close([together[0][name][run] for name in gradient], list(gradient.values()), 1e-10)


def test_the_form_is_native_unless_switched_for_the_whole_network() -> None:
    network = nn.Sequential(nn.Linear(2, 2), nn.ModuleList([Lstm(2, 3), Lstm(3, 3)]))
    cells = [layer for layer in network.modules() if isinstance(layer, Lstm)]
    assert [layer.plain for layer in cells] == [False, False]
    use_plain_cells(network, True)
    assert [layer.plain for layer in copy.deepcopy(cells)] == [True, True]
    use_plain_cells(network, False)
    assert [layer.plain for layer in cells] == [False, False]


def test_the_native_form_takes_the_parameters_it_is_given() -> None:
    one, two = Lstm(2, 3), Lstm(2, 3)
    x = torch.randn(2, 4, 2)
    own = one(x)[0]
    assert torch.equal(functional_call(one, dict(two.named_parameters()), (x,))[0], two(x)[0])
    assert torch.equal(one(x)[0], own)
