"""One run of a user's network in plain torch: eager, captured as a CUDA graph, compiled, compiled and captured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from tiebreak.tasks.interface import Split, Task

Form = Literal["eager", "graph", "compiled", "compiled+graph"]
WARM_UP = 3


class Solo:
    """A network, its batches in the order of one run of ours, and torch's own optimiser.

    Generous to the peer: the optimiser is one kernel, and a graph reads batches that lie ready on the device.
    """

    def __init__(
        self, task: Task, network: nn.Module, split: Split, batches: tuple[Tensor, Tensor], *,
        form: Form, lr: float, rule: str, bf16: bool = False,
    ) -> None:  # fmt: skip
        self.task, self.network, self.form, self.bf16 = task, network.train(), form, bf16
        self.device = next(network.parameters()).device
        self.batches = [
            {name: values.index_select(0, row) for name, values in split.items()} for row in batches[0].to(self.device)
        ]
        self.weights = batches[1].to(self.device)
        cuda = self.device.type == "cuda"
        if rule == "adam":
            how: dict[str, Any] = {"fused": True, "capturable": True} if cuda else {}
            self.optimiser: torch.optim.Optimizer = torch.optim.Adam(network.parameters(), lr=lr, **how)
        else:
            self.optimiser = torch.optim.SGD(network.parameters(), lr=lr, fused=cuda)
        self.position = 0
        self.loss = torch.compile(self._loss) if "compiled" in form else self._loss
        self.graph: torch.cuda.CUDAGraph | None = None
        self.now = {name: values.clone() for name, values in self.batches[0].items()}

    def prepare(self) -> None:
        """Warm up, which changes the parameters, and capture."""
        side = torch.cuda.Stream() if "graph" in self.form else None  # type: ignore[no-untyped-call]
        if side is None:
            self.run(WARM_UP)
            return
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                self._step(self.now)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._step(self.now)

    def run(self, steps: int) -> None:
        """Advance so many steps and wait for the device."""
        for _ in range(steps):
            batch = self.batches[self.position % len(self.batches)]
            self.position += 1
            if self.graph is None:
                self._step(batch)
                continue
            for name, values in batch.items():
                self.now[name].copy_(values)
            self.graph.replay()
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def parameters(self) -> dict[str, Tensor]:
        """By name."""
        return {name: each.detach().cpu() for name, each in self.network.named_parameters()}

    def _loss(self, batch: Mapping[str, Tensor]) -> Tensor:
        return self.task.loss(self.network, batch, self.weights, {})

    def _step(self, batch: Mapping[str, Tensor]) -> None:
        self.optimiser.zero_grad(set_to_none=self.graph is None)
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.bf16, cache_enabled=False):
            loss = self.loss(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
