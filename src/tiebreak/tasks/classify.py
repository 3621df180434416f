"""Image classification: negative log likelihood, accuracy; the protocols are in names.py as plain options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from tiebreak.data import images
from tiebreak.data.images import ImageData
from tiebreak.models.interfaces import Images
from tiebreak.names import Scalar
from tiebreak.tasks.interface import Hypers, Network, Split


class Classify:
    """The task of the `classifier` family: images [B, C, H, W] in, logits [B, classes] out."""

    def load(self, name: str, data_dir: Path | None) -> ImageData:
        """The data set `name`, checked."""
        return images.load_images(name, data_dir)

    def sizes(self, data: ImageData, options: Mapping[str, Scalar]) -> dict[str, int]:
        """How many images each split has."""
        return {name: len(_chosen(data, name, options)) for name in ("train", "val", "test")}

    def shape(self, data: ImageData) -> Images:
        """The image size and the number of classes."""
        _, height, width, *channels = data.images["train"].shape
        return Images(channels=channels[0] if channels else 1, height=height, width=width, classes=data.classes)

    def split(
        self, data: ImageData, name: str, options: Mapping[str, Scalar], evaluation: Mapping[str, Scalar]
    ) -> Split:
        """Images as float32 [N, C, H, W], moved as the evaluation says, and labels [N]."""
        chosen = _chosen(data, name, options)
        pixels = images.shift(data.images[name][chosen], int(evaluation.get("shift", 0)))
        if options["shuffle_pixels"]:
            order = images.pixel_permutation(*pixels.shape[1:3])
            flat = pixels.reshape(len(pixels), len(order), -1)
            pixels = flat[:, order].reshape(pixels.shape)
        channels_last = pixels if pixels.ndim == 4 else pixels[..., None]
        scaled = torch.from_numpy(np.ascontiguousarray(channels_last.transpose(0, 3, 1, 2))).float()
        scaled /= float(options["divisor"])
        return {"images": scaled, "labels": torch.from_numpy(data.labels[name][chosen])}

    def loss(self, network: Network, batch: Split, weights: Tensor, hypers: Hypers) -> Tensor:
        """The weighted mean of -log p(label), with label smoothing where the run has it."""
        logits = network(batch["images"])
        if "label_smoothing" not in hypers:
            return torch.dot(weights, F.cross_entropy(logits, batch["labels"], reduction="none"))
        minus_log_p = -F.log_softmax(logits, dim=1)
        share = hypers["label_smoothing"]
        picked = minus_log_p.gather(1, batch["labels"][:, None])[:, 0]
        return torch.dot(weights, (1 - share) * picked + share * minus_log_p.mean(dim=1))

    def outcomes(self, network: Network, batch: Split) -> dict[str, Tensor]:
        """Whether each image is classified correctly, and its loss."""
        logits = network(batch["images"])
        return {
            "accuracy": (logits.argmax(dim=1) == batch["labels"]).float(),
            "loss": F.cross_entropy(logits, batch["labels"], reduction="none"),
        }

    def metrics(self, outcomes: Mapping[str, Any]) -> dict[str, float]:
        """Both metrics are plain means over the images."""
        return {name: float(np.mean(values, dtype=np.float64)) for name, values in outcomes.items()}


def _chosen(data: ImageData, split: str, options: Mapping[str, Scalar]) -> npt.NDArray[np.int64]:
    if split == "test" and options["test_images"] == "as-reported":
        return images.as_reported_test(data.labels["test"])
    return np.arange(len(data.labels[split]))
