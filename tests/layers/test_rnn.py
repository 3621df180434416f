from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tiebreak.layers.rnn import Rnn, use_plain_cells

SHAPES = [(False, 1), (True, 1), (False, 2), (True, 2)]  # bidirectional, layers


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """These products are too small to share out."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def sample(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def everything(layer: nn.RNN, result: tuple[Tensor, Tensor], leaves: list[Tensor]) -> list[Tensor]:
    outputs, state = result
    loss = (outputs * torch.arange(1, outputs.numel() + 1).view_as(outputs).sin()).sum() + state.square().sum()
    return [outputs, state, *torch.autograd.grad(loss, [*layer.parameters(), *leaves])]


def assert_close(one: list[Tensor], two: list[Tensor], bound: float = 1e-12) -> None:
    for a, b in zip(one, two, strict=True):
        assert a.shape == b.shape
        assert float((a - b).detach().abs().max()) < bound


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu", "sigmoid"])
@pytest.mark.parametrize(("bidirectional", "layers"), SHAPES)
def test_names_order_and_initial_values_are_those_of_torch(bidirectional: bool, layers: int, nonlinearity: str) -> None:
    torch.manual_seed(5)
    ours = Rnn(4, 3, nonlinearity, bidirectional=bidirectional, layers=layers).state_dict()
    torch.manual_seed(5)
    theirs = nn.RNN(4, 3, layers, bidirectional=bidirectional).state_dict()
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@settings(deadline=None, max_examples=12)
@given(
    st.sampled_from(["tanh", "relu"]),
    st.sampled_from(SHAPES),
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
    st.integers(0, 2),
    st.booleans(),
)
def test_both_forms_are_torchs_rnn_packed_or_not(
    nonlinearity: str, shape: tuple[bool, int], lengths: list[int], more: int, packed: bool
) -> None:
    torch.manual_seed(0)
    bidirectional, layers = shape
    ours = Rnn(4, 3, nonlinearity, bidirectional=bidirectional, layers=layers).double()
    theirs = nn.RNN(4, 3, layers, nonlinearity=nonlinearity, batch_first=True, bidirectional=bidirectional).double()
    theirs.load_state_dict(ours.state_dict())
    rows, time = len(lengths), max(lengths) + more
    x, h = sample(rows, time, 4), sample(layers * (1 + bidirectional), rows, 3)
    counts = torch.tensor(lengths) if packed else None
    if counts is not None:
        outputs, last = theirs(pack_padded_sequence(x, counts, batch_first=True, enforce_sorted=False), h)
        outputs = pad_packed_sequence(outputs, batch_first=True, total_length=time)[0]
    else:
        outputs, last = theirs(x, h)
    expected = everything(theirs, (outputs, last), [x, h])
    for plain in (False, True):
        use_plain_cells(ours, plain)
        assert_close(everything(ours, ours(x, h, counts), [x, h]), expected)


@pytest.mark.parametrize("plain", [False, True])
def test_the_sigmoid_follows_the_formula_row_by_row(plain: bool) -> None:
    layer = Rnn(4, 3, "sigmoid").double()
    use_plain_cells(layer, plain)
    x, lengths = sample(3, 5, 4), torch.tensor([5, 1, 2])
    outputs, last = layer(x, None, lengths)
    own = dict(layer.named_parameters())
    bias = own["bias_ih_l0"] + own["bias_hh_l0"]
    for row, length in enumerate(lengths.tolist()):
        h = torch.zeros(3, dtype=torch.float64)
        for step in range(length):
            h = torch.sigmoid(own["weight_ih_l0"] @ x[row, step] + own["weight_hh_l0"] @ h + bias)
            assert_close([outputs[row, step]], [h])
        assert_close([last[0, row]], [h])
        assert not outputs[row, length:].any()


def test_cell_by_cell_is_the_whole_sequence() -> None:
    layer = Rnn(4, 3, "sigmoid", layers=2).double()
    x = sample(2, 5, 4)
    state, outputs = None, []
    for step in range(5):
        output, state = layer.cell(x[:, step], state)
        outputs.append(output)
    assert state is not None
    assert_close(everything(layer, (torch.stack(outputs, 1), state), [x]), everything(layer, layer(x), [x]))


def test_other_nonlinearities_are_refused() -> None:
    with pytest.raises(ValueError, match="Unknown nonlinearity"):
        Rnn(4, 3, "gelu")


def test_runs_together_are_each_run_alone_vmapped_and_traced() -> None:
    layers = [Rnn(4, 3, "sigmoid").double() for _ in range(3)]
    params, _ = stack_module_state(layers)
    x, carry = torch.randn(3, 2, 5, 4, dtype=torch.float64), torch.rand(3, 1, 2, 3, dtype=torch.float64)

    def loss(params: dict[str, Tensor], x: Tensor, carry: Tensor) -> Tensor:
        outputs, last = functional_call(layers[0], params, (x, carry))
        return outputs.square().sum() + last.sin().sum()  # type: ignore[no-any-return]

    step = vmap(grad(loss))
    for together in (step(params, x, carry), make_fx(step)(params, x, carry)(params, x, carry)):
        for run, layer in enumerate(layers):
            alone = grad(loss)(dict(layer.named_parameters()), x[run], carry[run])
            assert_close([together[name][run] for name in alone], list(alone.values()))
