"""Text classifiers: words [B, T] in, logits [B, classes] out. Word 0 is padding, and has no influence.

    bag    logits = W relu(V mean_t e(x_t) + c) + b                       no order of words
    cnn    logits = W [max_t relu(F_k e(x_t .. x_{t+k-1}))]_k + b         k = 2, 3, 4 words
    lstm   logits = W [h_T forward; h_1 backward] + b                     a bidirectional LSTM

e embeddings, drawn from N(0, 1); dropout 0.5 before W. The cnn is that of Kim, "Convolutional neural networks for
sentence classification" (2014), without pretrained embeddings; a filter over k words is a matrix on k embeddings side
by side. Places where a filter would reach into the padding at the end of a text do not count, except the text's first.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.layers.dropout import Dropout
from tiebreak.layers.lstm import Lstm
from tiebreak.models.design import PADDING, Texts

SPANS = (2, 3, 4)  # words that a filter of the cnn sees


class TextBag(nn.Module):
    """The mean of the embeddings, and one hidden layer."""

    def __init__(self, shape: Texts, *, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.words, width)
        self.hidden = nn.Linear(width, width)
        self.dropout = Dropout(0.5)
        self.out = nn.Linear(width, shape.classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits [B, classes]."""
        real = (tokens != PADDING).to(self.embedding.weight.dtype)
        mean = (self.embedding(tokens) * real[..., None]).sum(dim=1) / real.sum(dim=1).clamp(min=1)[:, None]
        logits: Tensor = self.out(self.dropout(F.relu(self.hidden(mean))))
        return logits


class TextCnn(nn.Module):
    """Filters over two, three and four words, and the largest answer of each."""

    def __init__(self, shape: Texts, *, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.words, width)
        self.filters = nn.ModuleList(nn.Linear(span * width, width) for span in SPANS)
        self.dropout = Dropout(0.5)
        self.out = nn.Linear(len(SPANS) * width, shape.classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits [B, classes]."""
        real = tokens != PADDING
        x = self.embedding(tokens) * real[..., None]
        length = real.sum(dim=1)[:, None]
        place = torch.arange(tokens.shape[1], device=tokens.device)
        found = []
        for span, layer in zip(SPANS, self.filters, strict=True):
            padded = F.pad(x, (0, 0, 0, span - 1))
            windows = torch.cat([padded[:, start : start + tokens.shape[1]] for start in range(span)], dim=-1)
            counts = (place <= length - span) | (place == 0)
            answers = F.relu(layer(windows)).masked_fill(~counts[..., None], 0.0)
            found.append(answers.amax(dim=1))
        logits: Tensor = self.out(self.dropout(torch.cat(found, dim=-1)))
        return logits


class TextLstm(nn.Module):
    """The last states of a bidirectional LSTM."""

    def __init__(self, shape: Texts, *, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.words, width)
        self.lstm = Lstm(width, width, bidirectional=True)
        self.dropout = Dropout(0.5)
        self.out = nn.Linear(2 * width, shape.classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits [B, classes]."""
        lengths = (tokens != PADDING).sum(dim=1).clamp(min=1)
        _, (last, _) = self.lstm(self.embedding(tokens), lengths=lengths)
        logits: Tensor = self.out(self.dropout(torch.cat([last[0], last[1]], dim=-1)))
        return logits
