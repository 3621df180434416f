"""Recurrent language models: each word updates the state, and the state predicts the next word.

    rnn     h_t = f(h_{t-1} H + e(x_t) I + b_1),  logits = h_t U + b_2          f sigmoid (report R4) or tanh
    lstm    e(x_t), LSTM, ..., LSTM, logits = y_t U + b

x_t words of a vocabulary V, e their embeddings L [|V|, d]; H [D, D], I [d, D], U [D, |V|]. Dropout on embeddings and on
outputs, and between the layers of the LSTM; the state itself is never dropped. States are carried from window to
window. The inputs of all steps enter by one product, and the outputs of all steps leave by one: the loop over time does
h H only. Parameters of the first: |V| (d + D + 1) + D (D + d + 1), which is 8,083,728 at d = 256, D = 512 and 10,000
words, and 86,619,920 at 2048 and 4096.

H, I, U and both biases of the first are drawn as Glorot and Bengio (2010) do, a bias as if a matrix of one row (b of D
numbers from +-sqrt(6 / (1 + D))), embeddings from N(0, 1): as report R4 says. The LSTM is that of Zaremba et al.
(2014), whose small one has 200, 200, two layers and no dropout, and whose medium one has 650, 650 and dropout 0.5. With
`tied` U is L again (Press and Wolf 2017).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.errors import TiebreakError
from tiebreak.layers.carry import Carry
from tiebreak.layers.dropout import Dropout
from tiebreak.layers.lstm import Lstm
from tiebreak.models.design import Words

EVENLY = 0.1  # embeddings and output layer of the LSTM start within plus and minus this


class RnnLanguage(nn.Module):
    """One recurrent layer; a design says which nonlinearity f it has."""

    squash: Callable[[Tensor], Tensor]

    def __init__(self, shape: Words, embedding: int = 256, hidden: int = 512) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.words, embedding)  # drawn from N(0, 1)
        self.recur = nn.Parameter(torch.empty(hidden, hidden))
        self.enter = nn.Parameter(torch.empty(embedding, hidden))
        self.leave = nn.Parameter(torch.empty(hidden, shape.words))
        self.bias_state = nn.Parameter(torch.empty(hidden))
        self.bias_words = nn.Parameter(torch.empty(shape.words))
        for matrix in (self.recur, self.enter, self.leave):
            nn.init.xavier_uniform_(matrix)
        for bias in (self.bias_state, self.bias_words):
            nn.init.xavier_uniform_(bias.data.view(1, -1))
        self.dropout_words, self.dropout_output = Dropout(0.1), Dropout(0.1)
        self.carry = Carry(streams=shape.streams, hidden=hidden)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits [B, S, T, words] for the token after each of tokens [B, S, T]."""
        x = self.dropout_words(self.embedding(tokens)).flatten(0, 1)
        outputs, last = self._read(x, self.carry(len(tokens)))
        self.carry.leave(last)
        return self._logits(outputs).view(*tokens.shape, -1)

    def begin(self, rows: int) -> Tensor:
        """The state in which a text begins."""
        return self.carry.state.new_zeros(rows, self.carry.state.shape[-1])

    def step(self, token: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [B, words] for the token after `token` [B], and the next state."""
        outputs, state = self._read(self.dropout_words(self.embedding(token))[:, None], state)
        return self._logits(outputs)[:, 0], state

    def _read(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """x [R, T, d] from a state [R, D] on: all states [R, T, D] and the last."""
        states = []
        for drive in (x.transpose(0, 1) @ self.enter + self.bias_state).unbind(0):
            state = self.squash(drive + state @ self.recur)
            states.append(state)
        return torch.stack(states, dim=1), state

    def _logits(self, outputs: Tensor) -> Tensor:
        kept: Tensor = self.dropout_output(outputs)
        return kept @ self.leave + self.bias_words


class RnnSigmoid(RnnLanguage):
    """The network of report R4."""

    squash = staticmethod(torch.sigmoid)


class RnnTanh(RnnLanguage):
    """The same with tanh."""

    squash = staticmethod(torch.tanh)


State = tuple[Tensor, Tensor]  # outputs and memories, each [layers, R, D]


class LstmLanguage(nn.Module):
    """Layers of LSTM with dropout before, between and after them."""

    def __init__(
        self, shape: Words, embedding: int = 320, hidden: int = 320, layers: int = 2, tied: bool = False
    ) -> None:
        super().__init__()
        if tied and embedding != hidden:
            raise TiebreakError(
                f"an lstm of embedding {embedding} and hidden {hidden} cannot be tied: its output layer is the "
                "embedding, so give both the same size"
            )
        self.embedding = nn.Embedding(shape.words, embedding)
        self.layers = nn.ModuleList(Lstm(embedding if number == 0 else hidden, hidden) for number in range(layers))
        self.dropouts = nn.ModuleList(Dropout(0.2) for _ in range(layers + 1))
        self.bias = nn.Parameter(torch.zeros(shape.words))
        self.leave = None if tied else nn.Parameter(torch.empty(shape.words, hidden))
        for table in (self.embedding.weight, *([] if self.leave is None else [self.leave])):
            nn.init.uniform_(table, -EVENLY, EVENLY)
        self.output, self.memory = (Carry(layers, streams=shape.streams, hidden=hidden) for _ in range(2))

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits [B, S, T, words] for the token after each of tokens [B, S, T]."""
        logits, (output, memory) = self._read(
            tokens.flatten(0, 1), (self.output(len(tokens)), self.memory(len(tokens)))
        )
        self.output.leave(output)
        self.memory.leave(memory)
        return logits.view(*tokens.shape, -1)

    def begin(self, rows: int) -> State:
        """The state in which a text begins."""
        layers, _, hidden = self.output.state.shape
        return self.output.state.new_zeros(layers, rows, hidden), self.output.state.new_zeros(layers, rows, hidden)

    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, words] for the token after `token` [B], and the next state."""
        logits, state = self._read(token[:, None], state)
        return logits[:, 0], state

    def _read(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Tokens [R, T] from a state on: logits [R, T, words] and the state after them."""
        x = self.embedding(tokens)
        last = []
        for number, layer in enumerate(self.layers):
            x, after = layer(self.dropouts[number](x), (state[0][number : number + 1], state[1][number : number + 1]))
            last.append(after)
        weight = self.embedding.weight if self.leave is None else self.leave
        logits = F.linear(self.dropouts[-1](x), weight, self.bias)
        return logits, (torch.cat([output for output, _ in last]), torch.cat([memory for _, memory in last]))
