"""Loss, outcomes and metrics of a classifier, from its logits [B, classes] and the labels [B]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from tiebreak.tasks import class_scores
from tiebreak.tasks.interface import Hypers, Split
from tiebreak.tasks.losses import smoothed_cross_entropy, smoothed_nll, weighted, widened


def class_loss(logits: Tensor, batch: Split, weights: Tensor, hypers: Hypers) -> Tensor:
    """Weighted mean of -log p(label), with label smoothing where the run has it. Mixed examples have two labels."""
    if "mixed_labels" in batch:
        own, other = (_losses(logits, batch[name], hypers) for name in ("labels", "mixed_labels"))
        return weighted(weights, torch.lerp(other, own, batch["share"].to(own.dtype)))
    return weighted(weights, _losses(logits, batch["labels"], hypers))


def class_outcomes(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Whether each example is classified correctly, its loss, the class it is taken for and with what probability."""
    logits = widened(logits)
    prediction = logits.argmax(dim=1)
    return {
        "accuracy": (prediction == labels).float(),
        "loss": F.cross_entropy(logits, labels, reduction="none"),
        "prediction": prediction.float(),
        "confidence": F.softmax(logits, dim=1).amax(dim=1),
        "label": labels.float(),
    }


def class_score(outcomes: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, npt.NDArray[Any]]]:
    """Accuracy and loss are plain means over the examples; the others are defined in `class_scores`."""
    labels, predictions = outcomes["label"], outcomes["prediction"]
    scores = {name: float(np.mean(outcomes[name], dtype=np.float64)) for name in ("accuracy", "loss")}
    scores["balanced_accuracy"] = class_scores.balanced_accuracy(labels, predictions)
    scores["macro_f1"] = class_scores.macro_f1(labels, predictions)
    scores["calibration_error"] = class_scores.calibration_error(outcomes["confidence"], outcomes["accuracy"])
    return scores, {**outcomes, "weight_class": class_scores.class_weights(labels)}


def _losses(logits: Tensor, labels: Tensor, hypers: Hypers) -> Tensor:
    """The loss of each example."""
    if "label_smoothing" not in hypers:
        return smoothed_cross_entropy(logits, labels, None)
    return smoothed_nll(logits, labels, hypers["label_smoothing"])
