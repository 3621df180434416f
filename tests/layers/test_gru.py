from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tiebreak.layers.gru import Gru

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("lengths", [None, [2, 5, 1]])
def test_both_forms_are_torchs_gru(plain: bool, lengths: list[int] | None) -> None:
    torch.manual_seed(4)
    ours = Gru(4, 3, bidirectional=True, layers=2)
    torch.manual_seed(4)
    theirs = nn.GRU(4, 3, 2, bidirectional=True, batch_first=True)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert all(torch.equal(one, other) for one, other in zip(ours.parameters(), theirs.parameters(), strict=True))
    ours.double().plain = plain
    theirs.double()
    x, first = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((3, 5, 4), (4, 3, 3)))
    found = ours(x, first, None if lengths is None else torch.tensor(lengths))
    if lengths is None:
        wanted = theirs(x, first)
    else:
        packed, last = theirs(pack_padded_sequence(x, torch.tensor(lengths), True, enforce_sorted=False), first)
        wanted = pad_packed_sequence(packed, batch_first=True)[0], last

    def everything(layer: nn.Module, result: tuple[Tensor, Tensor]) -> list[Tensor]:
        loss = sum((each * torch.arange(each.numel()).view_as(each).sin()).sum() for each in result)
        assert isinstance(loss, Tensor)
        return [*result, *torch.autograd.grad(loss, [*layer.parameters(), x, first])]

    for one, other in zip(everything(ours, found), everything(theirs, wanted), strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-12)


def test_cell_by_cell_is_the_whole_sequence() -> None:
    layer = Gru(4, 3)
    x = torch.randn(2, 3, 4)
    state = None
    for step in range(3):
        output, state = layer.cell(x[:, step], state)
    outputs, last = layer(x)
    assert state is not None
    assert torch.allclose(output, outputs[:, -1], atol=1e-6)
    assert torch.allclose(state, last, atol=1e-6)
