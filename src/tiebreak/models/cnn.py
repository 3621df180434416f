"""The convolutional classifiers of reports R0 to R2: max pooling, or stride 2 at the same number of parameters.

Shapes: B batch, C channels, H x W image. Images [B, C, H, W] in, logits [B, classes] out.
"""

from __future__ import annotations

from abc import abstractmethod

import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.cost.formulas import conv_size
from tiebreak.layers.dropout import Dropout
from tiebreak.models.interfaces import Images


class Cnn(nn.Module):
    """Two 3x3 convolutions (8 and 16 channels), then 320 and 120 hidden units with dropout 0.7 between them."""

    def __init__(self, shape: Images, *, padding: int, stride: int, pool: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(shape.channels, 8, 3, stride=stride, padding=padding)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=stride)
        height, width = (self._side(side, padding, stride, pool) for side in (shape.height, shape.width))
        self.hidden1 = nn.Linear(16 * height * width, 320)
        self.dropout = Dropout(0.7)
        self.hidden2 = nn.Linear(320, 120)
        self.out = nn.Linear(120, shape.classes)

    @staticmethod
    def _side(size: int, padding: int, stride: int, pool: int) -> int:
        first = conv_size(size, 3, stride=stride, padding=padding) // pool
        return conv_size(first, 3, stride=stride) // pool

    @abstractmethod
    def features(self, images: Tensor) -> Tensor:
        """The feature maps [B, 16, H', W']."""

    def forward(self, images: Tensor) -> Tensor:
        """Logits [B, classes]."""
        hidden = F.relu(self.hidden1(self.features(images).flatten(1)))
        hidden = F.relu(self.hidden2(self.dropout(hidden)))
        return self.out(hidden)  # type: ignore[no-any-return]


class CnnPool(Cnn):
    """Each convolution is followed by 2x2 max pooling. 224,892 parameters for 28x28 images and 4 classes."""

    def __init__(self, shape: Images) -> None:
        super().__init__(shape, padding=1, stride=1, pool=2)

    def features(self, images: Tensor) -> Tensor:
        """The feature maps [B, 16, H', W']."""
        return _pooled(self, images)


class CnnPoolUnpadded(Cnn):
    """CnnPool without the padding of the first convolution, as R2 built it by mistake. 168,572 parameters."""

    def __init__(self, shape: Images) -> None:
        super().__init__(shape, padding=0, stride=1, pool=2)

    def features(self, images: Tensor) -> Tensor:
        """The feature maps [B, 16, H', W']."""
        return _pooled(self, images)


class CnnStrided(Cnn):
    """No pooling: both convolutions have stride 2. 224,892 parameters, as many as CnnPool."""

    def __init__(self, shape: Images) -> None:
        super().__init__(shape, padding=1, stride=2, pool=1)

    def features(self, images: Tensor) -> Tensor:
        """The feature maps [B, 16, H', W']."""
        return F.relu(self.conv2(F.relu(self.conv1(images))))


def _pooled(net: Cnn, images: Tensor) -> Tensor:
    # ReLU first: the two commute, but pooling the zeros that it leaves is faster on a CPU (no mispredicted branches).
    maps = F.max_pool2d(F.relu(net.conv1(images)), 2)
    return F.max_pool2d(F.relu(net.conv2(maps)), 2)
