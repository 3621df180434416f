"""Tasks of a user's own: a regression, a segmentation with batch normalisation, and an autoencoder that draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tiebreak.study.schema import Study

REGRESSION = """
import torch
from torch import nn


def load():
    random = torch.Generator().manual_seed(0)
    x = torch.rand(90, 5, generator=random)
    return {"x": x, "y": x.sum(1) + 0.1 * torch.randn(90, generator=random)}


def loss(network, batch):
    return (network(batch["x"])[:, 0] - batch["y"]).square()


def metrics(network, batch):
    return {"error": (network(batch["x"])[:, 0] - batch["y"]).abs()}


class Narrow(nn.Module):
    def __init__(self, shape, width=4):
        super().__init__()
        (features,) = shape.sizes[0]
        self.layers = nn.Sequential(nn.Linear(features, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x):
        return self.layers(x)


class Wide(Narrow):
    def __init__(self, shape):
        super().__init__(shape, width=16)


DESIGNS = {"narrow": Narrow, "wide": Wide}
"""

SEGMENTATION = """
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def load(path):
    arrays = np.load(path)
    splits = ("train", "val", "test")
    return {
        split: {"images": arrays[f"{split}_images"] / 255, "masks": arrays[f"{split}_masks"] / 1.0} for split in splits
    }


def loss(network, batch):
    logits = network(batch["images"])
    return F.binary_cross_entropy_with_logits(logits, batch["masks"], reduction="none").mean((1, 2, 3))


def metrics(network, batch):
    found, wanted = network(batch["images"]) > 0, batch["masks"] > 0
    both, either = (found & wanted).sum((1, 2, 3)), (found | wanted).sum((1, 2, 3))
    return {"error": 1 - both / either.clamp(min=1)}


class Plain(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.out = nn.Conv2d(shape.sizes[0][0], 1, 3, padding=1)

    def forward(self, x):
        return self.out(x)


class Normed(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.conv = nn.Conv2d(shape.sizes[0][0], 4, 3, padding=1, bias=False)
        self.norm, self.drop = nn.BatchNorm2d(4), nn.Dropout(0.2)
        self.out = nn.Conv2d(4, 1, 1)

    def forward(self, x):
        return self.out(self.drop(F.relu(self.norm(self.conv(x)))))


DESIGNS = {"narrow": Plain, "wide": Normed}
"""

AUTOENCODER = """
import torch
from torch import nn


def load():
    random = torch.Generator().manual_seed(1)
    return {
        "x": torch.rand(70, 6, generator=random, dtype=torch.float64),
        "kind": torch.randint(3, (70,), generator=random, dtype=torch.int32),
    }


def loss(network, batch):
    restored, mean, log_variance = network(batch["x"], batch["kind"]).split([6, 2, 2], dim=1)
    divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1)
    return (restored - batch["x"]).square().sum(1) + 0.1 * divergence


def metrics(network, batch):
    return {"error": (network(batch["x"], batch["kind"])[:, :6] - batch["x"]).square().mean(1)}


class Certain(nn.Module):
    draws = False

    def __init__(self, shape):
        super().__init__()
        self.kinds = nn.Embedding(3, 2)
        self.encoder, self.decoder = nn.Linear(8, 4), nn.Linear(2, 6)

    def forward(self, x, kind):
        mean, log_variance = self.encoder(torch.cat([x, self.kinds(kind)], 1)).chunk(2, dim=1)
        z = mean
        if self.training and self.draws:
            z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return torch.cat([self.decoder(z), mean, log_variance], dim=1)


class Variational(Certain):
    draws = True


DESIGNS = {"narrow": Certain, "wide": Variational}
"""

TASKS = {"regression": REGRESSION, "segmentation": SEGMENTATION, "autoencoder": AUTOENCODER}


def own_study(folder: Path, task: str = "regression", **more: Any) -> Study:
    """A study of one of these tasks, written into the folder; `more` replaces whole keys."""
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / "mine.py"
    path.write_text(TASKS[task], "utf-8")
    if task == "segmentation":
        np.savez(folder / "images.npz", **_images())
        more = {"data": str(folder / "images.npz"), **more}
    return Study.model_validate(
        {
            "name": "mine",
            "question": "Is wide better than narrow?",
            "task": "own",
            "designs_from": str(path),
            "metrics": {"error": "min"},
            "metric": "error",
            "margin": 0.01,
            "seeds": 2,
            "budget": {"epochs": 2, "batch": 16},
            "optimiser": {"kind": "adam"},
            "fixed": {"lr": 0.01},
            "arms": [{"name": "narrow", "design": "narrow"}, {"name": "wide", "design": "wide"}],
            "comparisons": [{"a": "wide", "b": "narrow"}],
            **more,
        }
    )


def _images() -> dict[str, Any]:
    random = np.random.default_rng(0)
    found: dict[str, Any] = {}
    for split, count in {"train": 40, "val": 10, "test": 12}.items():
        images = random.integers(0, 256, (count, 1, 6, 6), dtype=np.uint8)
        found |= {f"{split}_images": images, f"{split}_masks": (images > 128).astype(np.uint8)}
    return found
