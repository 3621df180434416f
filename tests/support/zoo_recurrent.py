"""Users' networks with torch's recurrent layers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from support.zoo import WIDTH, Net, trains


@trains()
class Lstm(Net):
    def more(self) -> None:
        self.rnn = nn.LSTM(2, WIDTH, batch_first=True)

    def middle(self, x: Any) -> Any:
        self.rnn.flatten_parameters()
        return self.rnn(x.unflatten(1, (4, 2)))[0][:, -1]


@trains()
class Gru(Net):
    def more(self) -> None:
        self.rnn = nn.GRU(2, WIDTH, batch_first=True)

    def middle(self, x: Any) -> Any:
        return self.rnn(x.unflatten(1, (4, 2)))[0][:, -1]


@trains()
class GruBothWays(Net):
    """Time first, no bias, with an initial state that is learned."""

    def more(self) -> None:
        self.rnn = nn.GRU(2, 4, num_layers=2, bias=False, bidirectional=True)
        self.first = nn.Parameter(torch.rand(4, 1, 4))

    def middle(self, x: Any) -> Any:
        outputs, last = self.rnn(x.unflatten(1, (4, 2))[:, :2].transpose(0, 1), hx=self.first.repeat(1, len(x), 1))
        return outputs.mean(dim=0) + last[-2:].transpose(0, 1).flatten(1)


@trains()
class RnnOfRectifiers(Net):
    def more(self) -> None:
        self.rnn = nn.RNN(2, WIDTH, nonlinearity="relu")

    def middle(self, x: Any) -> Any:
        return self.rnn(x.unflatten(1, (4, 2)).transpose(0, 1))[1][0]


@trains(draws=True)
class LstmDropout(Net):
    def more(self) -> None:
        self.rnn = nn.LSTM(2, WIDTH, num_layers=2, dropout=0.5, batch_first=True)

    def middle(self, x: Any) -> Any:
        return self.rnn(x.unflatten(1, (4, 2))[:, :2])[0][:, -1]


class Packed(Net):
    """Rows of 1 to 4 real elements, which depend on the image."""

    def more(self) -> None:
        self.rnn: Any = nn.LSTM(2, WIDTH // 2, batch_first=True, bidirectional=True)

    def packed(self, x: Any) -> Any:
        lengths = (x[:, ::2] > 0).sum(dim=1).clamp(min=1)
        return pack_padded_sequence(x.unflatten(1, (4, 2)), lengths.cpu(), batch_first=True, enforce_sorted=False)


@trains()
class PackedLastState(Packed):
    def middle(self, x: Any) -> Any:
        _, (last, _) = self.rnn(self.packed(x))
        return torch.cat([last[0], last[1]], dim=-1)


@trains(draws=True)
class PackedOutputs(Packed):
    def more(self) -> None:
        self.rnn = nn.GRU(2, WIDTH, num_layers=2, dropout=0.4)

    def middle(self, x: Any) -> Any:
        outputs, lengths = pad_packed_sequence(self.rnn(self.packed(x))[0], batch_first=True, total_length=4)
        return outputs.sum(dim=1) / lengths[:, None].to(outputs)


@trains(fusible=False)
class PackedWithoutTotal(Packed):
    """Its outputs have as many steps as the longest row."""

    def middle(self, x: Any) -> Any:
        return pad_packed_sequence(self.rnn(self.packed(x))[0], batch_first=True)[0].sum(dim=1)


@trains(fusible=False)
class PackedData(Packed):
    """It computes with the packed numbers themselves."""

    def middle(self, x: Any) -> Any:
        return self.rnn(self.packed(x))[1][0].transpose(0, 1).flatten(1) * self.packed(x).data.mean()


@trains()
class LstmProjection(Net):
    def more(self) -> None:
        self.rnn = nn.LSTM(2, WIDTH + 1, proj_size=WIDTH, batch_first=True)

    def middle(self, x: Any) -> Any:
        return self.rnn(x.unflatten(1, (4, 2))[:, :2])[0][:, -1]


@trains()
class LstmCell(Net):
    def more(self) -> None:
        self.cell = nn.LSTMCell(4, WIDTH)

    def middle(self, x: Any) -> Any:
        state: tuple[Tensor, Tensor] | None = None
        for part in x.split(4, dim=1):
            state = self.cell(part, state)
        assert state is not None
        return state[0]


class OwnGru(nn.GRU):
    """A user's own class: what it changes is not known, so it is not replaced."""


@trains(fusible=False)
class GruSubclass(Net):
    def more(self) -> None:
        self.rnn = OwnGru(2, WIDTH, batch_first=True)

    def middle(self, x: Any) -> Any:
        return self.rnn(x.unflatten(1, (4, 2)))[0][:, -1]
