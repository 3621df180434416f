"""One run trained by Lightning's Trainer on a CPU, with everything that can be turned off turned off."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from peers.network import lone_network, numbers
from peers.problem import Floats, Problem
from tiebreak.layers.dropout import restart_calls

Batch = tuple[Tensor, Tensor, Tensor]  # images, labels, dropout key


class Feed(IterableDataset[Batch]):
    """The problem's batches, cut from tensors by index: much cheaper than a loader that collates single examples."""

    def __init__(self, problem: Problem, steps: int) -> None:
        self.problem, self.steps = problem, steps

    def __iter__(self) -> Iterator[Batch]:
        images, labels = torch.from_numpy(self.problem.images), torch.from_numpy(self.problem.labels)
        indices, keys = torch.from_numpy(self.problem.indices[:, 0]), torch.from_numpy(self.problem.keys[:, 0])
        for step in range(self.steps):
            now = step % self.problem.steps
            yield images.index_select(0, indices[now]), labels.index_select(0, indices[now]), keys[now]


def lightning_seconds(problem: Problem, steps: int) -> float:
    """Seconds that Lightning takes for so many steps of a problem of one run, without setup and a few first steps."""
    return train(problem, steps)[0]


def train(problem: Problem, steps: int, *, warm_up: int = 20, hashed: bool = False) -> tuple[float, dict[str, Floats]]:
    """Train `warm_up` + `steps` steps: the seconds of the latter, and the parameters after all of them."""
    try:
        import pytorch_lightning as lightning
    except ImportError:
        raise SystemExit("Lightning is not installed: pip install -c constraints.txt pytorch-lightning") from None

    class Module(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = lone_network(problem, "cpu", hashed)

        def training_step(self, batch: Batch, number: int) -> Tensor:
            images, labels, key = batch
            if hashed:
                self.network.dropout.key = key
                restart_calls(self.network)
            return F.cross_entropy(self.network(images), labels)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.network.parameters(), lr=float(problem.lr[0]))

    class Clock(lightning.Callback):  # type: ignore[misc]
        started = stopped = 0.0

        def on_train_batch_start(self, trainer: Any, module: Any, batch: Batch, number: int) -> None:
            if number == warm_up:
                self.started = time.perf_counter()

        def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Batch, number: int) -> None:
            self.stopped = time.perf_counter()

    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    module, clock, total = Module(), Clock(), warm_up + steps
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is one worker, that there is no logger
        lightning.Trainer(
            accelerator="cpu",
            devices=1,
            max_epochs=1,
            logger=False,
            callbacks=[clock],
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        ).fit(module, DataLoader(Feed(problem, total), batch_size=None))
    if module.global_step != total:
        raise SystemExit(f"Lightning took {module.global_step} steps instead of {total}: no time is worth printing")
    return clock.stopped - clock.started, numbers(module.network)
