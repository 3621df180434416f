"""Torch's recurrent layers and cells, swapped, against themselves: outputs, states, gradients, in both forms.

Trained, fused, packed with lengths that differ from run to run: `tests/contract`, with the networks of `zoo_recurrent`.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from tiebreak.layers.dropout import keyed
from tiebreak.layers.rnn import use_plain_cells
from tiebreak.layers.swapped_recurrent import Swapped, swap_recurrent

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:LSTM with projections"),  # of torch's own kernel
]

LAYERS = {"lstm": nn.LSTM, "gru": nn.GRU, "tanh": nn.RNN, "relu": nn.RNN}
CELLS = {"lstm": nn.LSTMCell, "gru": nn.GRUCell, "tanh": nn.RNNCell, "relu": nn.RNNCell}
CLOSE = {torch.float64: 1e-12, torch.float32: 1e-5}


def pair(kind: str, kinds: dict[str, Any], *sizes: int, **how: Any) -> tuple[Any, Any]:
    """Torch's layer and ours with the same numbers."""
    if kind in ("tanh", "relu"):
        how["nonlinearity"] = kind
    theirs = kinds[kind](*sizes, **how)
    ours = copy.deepcopy(theirs)
    names = list(theirs.state_dict())
    swap_recurrent(ours)
    assert list(ours.state_dict()) == names
    return theirs, ours


def flat(result: Any) -> list[Tensor]:
    """The tensors of a result, packed ones padded."""
    if isinstance(result, PackedSequence):
        return [pad_packed_sequence(result)[0]]
    return [result] if isinstance(result, Tensor) else [each for part in result for each in flat(part)]


def everything(layer: nn.Module, result: Any, leaves: list[Tensor]) -> list[Tensor]:
    results = flat(result)
    loss = sum((each * torch.arange(1, each.numel() + 1).view_as(each).sin()).sum() for each in results)
    assert isinstance(loss, Tensor)
    return [*results, *torch.autograd.grad(loss, [*layer.parameters(), *leaves], retain_graph=True)]


def assert_same(theirs: list[Tensor], ours: list[Tensor], dtype: torch.dtype = torch.float64) -> None:
    for one, other in zip(theirs, ours, strict=True):
        assert one.shape == other.shape
        assert float((one - other).detach().abs().max()) < CLOSE[dtype]


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_every_option_gives_torchs_numbers(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(LAYERS)))
    how: dict[str, Any] = {name: data.draw(st.booleans(), name) for name in ("bidirectional", "batch_first", "bias")}
    layers = how["num_layers"] = data.draw(st.integers(1, 3), "layers")
    projection = data.draw(st.sampled_from([0, 2]), "projection") if kind == "lstm" else 0
    form = data.draw(st.sampled_from(["batch", "single", "packed", "sorted"]), "form")
    dtype = data.draw(st.sampled_from([torch.float64, torch.float32]), "dtype")
    torch.manual_seed(data.draw(st.integers(0, 99)))
    theirs, ours = pair(kind, LAYERS, 4, 3, **how, **({"proj_size": 2} if projection else {}))
    theirs.to(dtype)
    ours.to(dtype)
    lengths = sorted(data.draw(st.lists(st.integers(1, 5), min_size=3, max_size=3), "lengths"), reverse=True)
    lengths = lengths if form == "sorted" else lengths[::-1]
    rows = (3,) if form != "single" else ()
    sizes = (*rows, 5, 4) if how["batch_first"] else (5, *rows, 4)
    leaves = [torch.randn(sizes, dtype=dtype, requires_grad=True)]
    x: Any = leaves[0]
    if form in ("packed", "sorted"):
        x = pack_padded_sequence(x, torch.tensor(lengths), how["batch_first"], enforce_sorted=form == "sorted")
    state: Any = None
    if data.draw(st.booleans(), "state"):
        count = layers * (1 + how["bidirectional"])
        widths = [projection or 3, 3] if kind == "lstm" else [3]
        parts = [torch.randn(count, *rows, width, dtype=dtype, requires_grad=True) for width in widths]
        leaves += parts
        state = tuple(parts) if kind == "lstm" else parts[0]
    wanted = everything(theirs, theirs(x, state), leaves)
    for plain in (False, True):
        use_plain_cells(ours, plain)
        assert_same(wanted, everything(ours, ours(x, hx=state), leaves), dtype)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", sorted(CELLS))
def test_cells_give_torchs_numbers(kind: str, bias: bool) -> None:
    theirs, ours = pair(kind, CELLS, 4, 3, bias=bias)
    theirs.double()
    ours.double()
    for rows in ((), (2,)):
        x = torch.randn(*rows, 4, dtype=torch.float64, requires_grad=True)
        wanted = everything(theirs, theirs(x, theirs(x)), [x])
        for plain in (False, True):
            use_plain_cells(ours, plain)
            assert_same(wanted, everything(ours, ours(x, ours(x)), [x]))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["lstm", "gru", "tanh"])
def test_dropout_between_layers_is_one_mask_in_both_forms(kind: str, packed: bool) -> None:
    theirs, ours = pair(kind, LAYERS, 4, 3, num_layers=3, dropout=0.5, bidirectional=True)
    theirs.double()
    ours.double()
    x: Any = torch.randn(5, 4, 4, dtype=torch.float64)
    if packed:
        x = pack_padded_sequence(x, torch.tensor([3, 1, 3, 5]), enforce_sorted=False)
    found = []
    for plain in (False, True):
        use_plain_cells(ours, plain)
        (layer,) = keyed(ours).values()
        layer.calls = 0
        found.append(everything(ours, ours(x), []))
        assert layer.calls == 2
    assert_same(found[0], found[1])
    assert not torch.allclose(flat(theirs.eval()(x))[0], found[0][0])
    use_plain_cells(ours, False)
    assert_same(flat(theirs(x)), flat(ours.eval()(x)))


@pytest.mark.parametrize("plain", [False, True])
def test_a_wrong_call_is_refused_as_torch_refuses_it(plain: bool) -> None:
    _, layer = pair("lstm", LAYERS, 4, 3, num_layers=2, dropout=0.5)
    _, cell = pair("gru", CELLS, 4, 3)
    for each in (layer, cell):
        use_plain_cells(each, plain)
    with pytest.raises(RuntimeError, match="Expected 4, got 5"):
        layer(torch.randn(2, 3, 5))
    with pytest.raises(RuntimeError, match="hidden"):
        layer(torch.randn(2, 3, 4), (torch.randn(2, 9, 3), torch.randn(2, 9, 3)))
    with pytest.raises(ValueError, match=r"LSTM.*4"):
        layer(torch.randn(1, 2, 3, 4))
    with pytest.raises(ValueError, match=r"GRUCell.*3"):
        cell(torch.randn(1, 2, 4))


def test_objects_hooks_and_subclasses_stay() -> None:
    class Own(nn.GRU):
        """A user's."""

    calls = []
    network = nn.ModuleList([nn.LSTM(2, 3), Own(2, 3), nn.RNN(2, 3, num_layers=2, dropout=0.1)])
    network[0].register_forward_hook(lambda *_: calls.append(1))
    before = list(network)
    swap_recurrent(network)
    assert list(network) == before
    assert [isinstance(each, Swapped) for each in network] == [True, False, True]
    network[0](torch.zeros(1, 1, 2))
    assert calls
    assert all("between" not in name for name in network.state_dict())
    again = copy.deepcopy(network)
    swap_recurrent(again)
    assert [type(each) for each in again] == [type(each) for each in network]
