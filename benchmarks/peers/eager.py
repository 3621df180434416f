"""One run as anyone would write it: module, optimiser, backward, step."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from peers.network import lone_network, numbers, restart
from peers.problem import Floats, Problem
from tiebreak.layers.dropout import restart_calls


class Eager:
    """A problem of one run; its data and the order of it lie on the device, and nothing waits for the device."""

    def __init__(self, problem: Problem, device: str, *, hashed: bool = False) -> None:
        self.problem, self.device, self.hashed = problem, device, hashed
        self.network = lone_network(problem, device, hashed).train()
        self.optimiser = torch.optim.SGD(self.network.parameters(), lr=float(problem.lr[0]))
        self.images = torch.from_numpy(problem.images).to(device)
        self.labels = torch.from_numpy(problem.labels).to(device)
        self.indices = list(torch.from_numpy(problem.indices[:, 0]).to(device))
        self.keys = list(torch.from_numpy(problem.keys[:, 0]).to(device))
        self.position = 0

    def prepare(self) -> None:
        """Take a few steps, then go back."""
        self.run(5)
        self.reset()

    def run(self, steps: int) -> None:
        """Advance so many steps and wait for the device."""
        for _ in range(steps):
            chosen = self.indices[self.position]
            if self.hashed:
                self.network.dropout.key = self.keys[self.position]
                restart_calls(self.network)
            self.optimiser.zero_grad()
            logits = self.network(self.images.index_select(0, chosen))
            loss = F.cross_entropy(logits, self.labels.index_select(0, chosen))
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()
            self.position = (self.position + 1) % self.problem.steps
        if self.device != "cpu":
            torch.cuda.synchronize()

    def reset(self) -> None:
        """Back to the initial parameters and the first step."""
        restart(self.network, self.problem)
        self.position = 0

    def parameters(self) -> dict[str, Floats]:
        """Name -> [1, ...]."""
        return numbers(self.network)
