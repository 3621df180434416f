"""Image classification: negative log likelihood, accuracy; the protocols are plain options in study/registry.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.data.images import affine, image_data, image_files
from tiebreak.data.images.affine import DISTURBANCES, Move
from tiebreak.data.images.image_data import ImageData
from tiebreak.data.images.image_files import Form
from tiebreak.models.design import Images
from tiebreak.study.registry import Scalar
from tiebreak.tasks.class_outcomes import class_loss, class_outcomes, class_score
from tiebreak.tasks.interface import Arrays, Hypers, Network, Split, TrainedOn
from tiebreak.tasks.reply import Answer, Reply

ROBUSTNESS: Mapping[str, tuple[Move, ...]] = {  # the curves of the report
    "shift": tuple(Move(shift=value) for value in (-4, -3, -2, -1, 0, 1, 2, 3, 4)),
    "rotate": tuple(Move(rotate=value) for value in (-40.0, -30.0, -20.0, -10.0, 0.0, 10.0, 20.0, 30.0, 40.0)),
    "scale": tuple(Move(scale=value) for value in (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4)),
}
CURVE_IMAGES = 500  # of the test split, for a curve: the exact figures are the evaluations'
SHOWN_MAPS = 3  # images whose activation maps are kept


class Classify:
    """The task of the `classifier` family: images [B, C, H, W] in, logits [B, classes] out."""

    shared: frozenset[str] = frozenset()
    ordered: bool = False

    def __init__(self, resize: int = 0) -> None:
        self._resize = resize

    def load(self, name: str, data_dir: Path | None) -> ImageData:
        """The data set `name`, checked; the images of a user's own folder resized as the options say."""
        return image_data.load(name, data_dir, self._resize)

    def vocabulary(self, data: ImageData) -> dict[str, tuple[str, ...]]:
        """The names of the classes."""
        return {"classes": data.class_names}

    def with_options(self, options: Mapping[str, Scalar]) -> Classify:
        """The same with another size of images; loss and outcomes have no options."""
        return Classify(int(options.get("resize", self._resize)))

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
        moves = [_move(evaluation)] if not evaluation.get("disturbed") else list(DISTURBANCES)
        moved = [self.inputs(affine.move(data.images[name][chosen], each), options) for each in moves]
        return {
            "images": torch.cat(moved) if len(moved) > 1 else moved[0],
            "labels": torch.from_numpy(data.labels[name][chosen]).repeat(len(moves)),
        }

    def inputs(self, pixels: npt.NDArray[np.uint8], options: Mapping[str, Scalar]) -> Tensor:
        """What a network sees of images [N, H, W] or [N, H, W, C]: float32 [N, C, H, W], scaled, shuffled if asked."""
        if options["shuffle_pixels"]:
            order = image_data.pixel_permutation(*pixels.shape[1:3])
            pixels = pixels.reshape(len(pixels), len(order), -1)[:, order].reshape(pixels.shape)
        channels_last = pixels if pixels.ndim == 4 else pixels[..., None]
        scaled = torch.from_numpy(np.ascontiguousarray(channels_last.transpose(0, 3, 1, 2))).float()
        return scaled.div_(float(options["divisor"]))

    def loss(self, network: Network, batch: Split, weights: Tensor, hypers: Hypers) -> Tensor:
        """Weighted mean of -log p(label), with label smoothing where the run has it. Mixed images have two labels."""
        return class_loss(network(batch["images"]), batch, weights, hypers)

    def outcomes(self, network: Network, batch: Split) -> dict[str, Tensor]:
        """Whether each image is classified correctly, its loss, the class it is taken for and with what probability."""
        return class_outcomes(network(batch["images"]), batch["labels"])

    def score(self, outcomes: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, npt.NDArray[Any]]]:
        """Accuracy and loss are plain means over the images; the others are defined in `class_scores`."""
        return class_score(outcomes)

    def exhibits(
        self, network: nn.Module, data: ImageData, options: Mapping[str, Scalar], examples: Sequence[int]
    ) -> dict[str, Arrays]:
        """Robustness curves; and, with test examples given, these images, their labels and the first layer's maps."""
        shown: dict[str, Arrays] = {"robustness": self._robustness(network, data, options)}
        if examples:
            chosen = _chosen(data, "test", options)
            pixels = data.images["test"][chosen[list(examples)]]
            shown["examples"] = {
                "index": np.asarray(examples),
                "images": pixels,
                "labels": data.labels["test"][chosen[list(examples)]],
                "test_labels": data.labels["test"][chosen],
                "class_names": np.asarray(data.class_names or [str(number) for number in range(data.classes)]),
            }
            maps = _first_maps(network, self.inputs(pixels[:SHOWN_MAPS], options))
            if maps is not None:
                shown["activations"] = {"images": pixels[:SHOWN_MAPS], "maps": maps}
        return shown

    def answer(
        self, network: nn.Module, user_input: str, trained_on: TrainedOn, use_options: Mapping[str, Scalar]
    ) -> Reply:
        """The classes of a picture file, most likely first; the note says if the picture was resized."""
        shape = trained_on.shape
        assert isinstance(shape, Images)
        form = Form(width=shape.width, height=shape.height, grey=shape.channels == 1)
        pixels, note = image_files.read_resized(Path(user_input), form)
        with torch.no_grad():
            probabilities = F.softmax(network(self.inputs(pixels[None], trained_on.options)), dim=1)[0].tolist()
        names = trained_on.vocabulary["classes"]
        answers = [Answer(text=name, probability=value) for name, value in zip(names, probabilities, strict=True)]
        return Reply(answers=sorted(answers, key=lambda each: -(each.probability or 0.0)), note=note)

    def _robustness(self, network: nn.Module, data: ImageData, options: Mapping[str, Scalar]) -> Arrays:
        chosen = _chosen(data, "test", options)[:CURVE_IMAGES]
        labels = torch.from_numpy(data.labels["test"][chosen])
        device = next(network.parameters()).device
        curves: dict[str, Any] = {}
        for kind, moves in ROBUSTNESS.items():
            curves[f"{kind}_value"] = np.array([getattr(each, kind) for each in moves], np.float32)
            batches = (self.inputs(affine.move(data.images["test"][chosen], each), options) for each in moves)
            with torch.no_grad():
                right = [(network(batch.to(device)).argmax(dim=1).cpu() == labels).float().mean() for batch in batches]
            curves[f"{kind}_accuracy"] = torch.stack(right).numpy()
        return curves


def _move(evaluation: Mapping[str, Scalar]) -> Move:
    return Move(
        shift=int(evaluation.get("shift", 0)),
        rotate=float(evaluation.get("rotate", 0.0)),
        scale=float(evaluation.get("scale", 1.0)),
    )


def _chosen(data: ImageData, split: str, options: Mapping[str, Scalar]) -> npt.NDArray[np.int64]:
    if split == "test" and options["test_images"] == "as-reported":
        return data.reported_test_images()
    return np.arange(len(data.labels[split]))


def _first_maps(network: nn.Module, inputs: Tensor) -> npt.NDArray[np.float16] | None:
    """What the first convolution makes of the inputs, after ReLU: [N, maps, H', W']. None without a convolution."""
    first = next((layer for layer in network.modules() if isinstance(layer, nn.Conv2d)), None)
    if first is None:
        return None
    with torch.no_grad():
        return F.relu(first(inputs.to(first.weight.device))).cpu().half().numpy()
