"""An image read as a sequence of its rows, by one layer of attention: for asking what heads and kinds of it are worth.

    x = rows E + positions,   y = x + attention(x),   logits = mean over rows of relu(y H + b) times O

Shapes: B batch, C channels, H x W image, d width. Images [B, C, H, W] in, logits [B, classes] out.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.layers.heads import MultiHead
from tiebreak.models.design import Images

WIDTH = 64


class AttentionRows(nn.Module):
    """Attention between rows. The number of heads and the kind of attention change no parameter count."""

    def __init__(self, shape: Images, *, heads: int, kind: str) -> None:
        super().__init__()
        self.embed = nn.Linear(shape.channels * shape.width, WIDTH)
        self.positions = nn.Parameter(0.1 * torch.randn(shape.height, WIDTH))
        self.attention = MultiHead(WIDTH, heads, kind=kind, output_projection=False, bias="none")
        self.hidden = nn.Linear(WIDTH, 2 * WIDTH)
        self.out = nn.Linear(2 * WIDTH, shape.classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits [B, classes]."""
        rows = self.embed(images.transpose(1, 2).flatten(2)) + self.positions
        rows = rows + self.attention(rows)
        return self.out(F.relu(self.hidden(rows)).mean(dim=1))  # type: ignore[no-any-return]
