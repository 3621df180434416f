"""The fully connected classifier: no notion of which pixels are neighbours.

Shapes: B batch, C channels, H x W image. Images [B, C, H, W] in, logits [B, classes] out.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.layers.dropout import Dropout
from tiebreak.models.cnn import CnnKuzushiji, CnnPool, CnnPoolUnpadded, CnnStrided
from tiebreak.models.design import Images

MATCHES: dict[str, type[nn.Module]] = {
    "cnn-pool": CnnPool,
    "cnn-strided": CnnStrided,
    "cnn-pool-unpadded": CnnPoolUnpadded,
    "cnn-kuzushiji": CnnKuzushiji,
}
LAST = 120  # the second hidden layer, as in the convolutional nets


class Mlp(nn.Module):
    """Pixels, h hidden units, dropout, 120 hidden units, classes: h makes it as large as the CNN named by `match`.

    Parameters: h (C H W + 1) + 120 (h + 1) + classes (120 + 1), so h = (target - 120 - 121 classes) / (C H W + 121),
    rounded; the count is within half a hidden unit of the target's.
    """

    def __init__(self, shape: Images, *, match: str) -> None:
        super().__init__()
        pixels = shape.channels * shape.height * shape.width
        with torch.device("meta"):  # counted, never filled: draws no random numbers
            target = sum(parameter.numel() for parameter in MATCHES[match](shape).parameters())
        units = max(1, round((target - LAST - (LAST + 1) * shape.classes) / (pixels + LAST + 1)))
        self.hidden1 = nn.Linear(pixels, units)
        self.dropout = Dropout(0.7)
        self.hidden2 = nn.Linear(units, LAST)
        self.out = nn.Linear(LAST, shape.classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits [B, classes]."""
        hidden = F.relu(self.hidden1(images.flatten(1)))
        hidden = F.relu(self.hidden2(self.dropout(hidden)))
        return self.out(hidden)  # type: ignore[no-any-return]
