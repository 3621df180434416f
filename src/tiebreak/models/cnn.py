"""The convolutional classifiers of reports R0 to R2: max pooling, or stride 2 at the same number of parameters.

Shapes: B batch, C channels, H x W image. Images [B, C, H, W] in, logits [B, classes] out.
"""

from __future__ import annotations

from abc import abstractmethod

import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.cost.formulas import conv_size
from tiebreak.layers.dropout import Dropout
from tiebreak.models.design import Images


class Cnn(nn.Module):
    """Two convolutions (8 and 16 channels), then two hidden layers with dropout between them."""

    first_kernel, first_padding, stride, pool = 3, 1, 1, 1  # the second kernel is 3 without padding
    hidden, dropout_rate = 320, 0.7

    def __init__(self, shape: Images) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(shape.channels, 8, self.first_kernel, stride=self.stride, padding=self.first_padding)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=self.stride)
        self.hidden1 = nn.Linear(16 * self._side(shape.height) * self._side(shape.width), self.hidden)
        self.dropout = Dropout(self.dropout_rate)
        self.hidden2 = nn.Linear(self.hidden, 120)
        self.out = nn.Linear(120, shape.classes)

    def _side(self, size: int) -> int:
        first = conv_size(size, self.first_kernel, stride=self.stride, padding=self.first_padding) // self.pool
        return conv_size(first, 3, stride=self.stride) // self.pool

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

    pool = 2

    def features(self, images: Tensor) -> Tensor:
        """The feature maps [B, 16, H', W']."""
        return _pooled(self, images)


class CnnPoolUnpadded(Cnn):
    """CnnPool without the padding of the first convolution, as report R2 built it by mistake. 168,572 parameters."""

    first_padding, pool = 0, 2

    def features(self, images: Tensor) -> Tensor:
        """The feature maps [B, 16, H', W']."""
        return _pooled(self, images)


class CnnStrided(Cnn):
    """No pooling: both convolutions have stride 2. 224,892 parameters, as many as CnnPool."""

    stride = 2

    def features(self, images: Tensor) -> Tensor:
        """The feature maps [B, 16, H', W']."""
        return F.relu(self.conv2(F.relu(self.conv1(images))))


class CnnKuzushiji(Cnn):
    """The network of report R3 for Kuzushiji-MNIST: a 5x5 filter first, 600 hidden units. 420,906 parameters."""

    first_kernel, first_padding, pool = 5, 2, 2
    hidden, dropout_rate = 600, 0.3

    def features(self, images: Tensor) -> Tensor:
        """The feature maps [B, 16, H', W']."""
        return _pooled(self, images)


def _pooled(net: Cnn, images: Tensor) -> Tensor:
    # ReLU first: the two commute, but pooling the zeros that it leaves is faster on a CPU (no mispredicted branches).
    maps = F.max_pool2d(F.relu(net.conv1(images)), 2)
    return F.max_pool2d(F.relu(net.conv2(maps)), 2)
