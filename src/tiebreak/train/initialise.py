"""Initialisation that a study asks for, in the place of a design's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from tiebreak.errors import TiebreakError
from tiebreak.layers.global_generators import seeded
from tiebreak.study.base import Init

RULES: Mapping[Init, Callable[[Any], Any]] = {
    "xavier-uniform": nn.init.xavier_uniform_,
    "xavier-normal": nn.init.xavier_normal_,
    "kaiming-uniform": nn.init.kaiming_uniform_,
    "kaiming-normal": nn.init.kaiming_normal_,
    "orthogonal": nn.init.orthogonal_,
}


def initialise(network: nn.Module, init: Init, key: int) -> None:
    """Draw all trained matrices and filters anew, and set the biases beside them to 0.

    Embeddings, and the scales and offsets of normalisation layers, stay as the design has them.
    """
    drawn = 0
    with seeded(key), torch.no_grad():
        for layer in network.modules():
            own = dict(layer.named_parameters(recurse=False))
            weights = [each for each in own.values() if each.ndim >= 2 and each.requires_grad]
            if isinstance(layer, nn.Embedding | nn.EmbeddingBag) or not weights:
                continue
            for each in weights:
                RULES[init](each)
            for name, each in own.items():
                if each.ndim == 1 and "bias" in name:
                    each.zero_()
            drawn += len(weights)
    if not drawn:
        raise TiebreakError(f"init = {init!r}: the design has no weight matrices or filters to initialise")
