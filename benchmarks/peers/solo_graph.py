"""One run whose steps are captured in a CUDA graph, several of them to a replay."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from peers.network import lone_network, numbers, restart
from peers.problem import Floats, Problem
from tiebreak.layers.dropout import restart_calls

DEVICE = "cuda"
WARM_UP = 3  # blocks of steps before the capture: cuDNN chooses its algorithms, workspaces are allocated


class SoloGraph:
    """A problem of one run on a CUDA device. A replay is `block` steps, which read their data from one static buffer.

    Generous to the peer: all images of a block are gathered at once, cuDNN tries all its algorithms, and the update is
    the one kernel of the foreach SGD without the optimiser around it.
    """

    graph: torch.cuda.CUDAGraph

    def __init__(self, problem: Problem, *, block: int = 10, hashed: bool = False) -> None:
        if problem.steps % block:
            raise ValueError(f"{problem.steps} steps are not whole blocks of {block}")
        self.problem, self.block, self.hashed = problem, block, hashed
        self.network = lone_network(problem, DEVICE, hashed).train()
        self.weights: list[torch.Tensor] = list(self.network.parameters())
        self.images = torch.from_numpy(problem.images).to(DEVICE)
        self.labels = torch.from_numpy(problem.labels).to(DEVICE)
        self.indices = (
            torch.from_numpy(problem.indices[:, 0].copy()).to(DEVICE).view(-1, block, problem.indices.shape[2])
        )
        self.keys = torch.from_numpy(problem.keys[:, 0].copy()).to(DEVICE).view(-1, block)
        self.now_indices, self.now_keys = self.indices[0].clone(), self.keys[0].clone()  # what the graph reads
        self.position = 0  # in blocks

    def prepare(self) -> None:
        """Warm up on a side stream, capture a block, replay it once, then go back."""
        chosen, torch.backends.cudnn.benchmark = torch.backends.cudnn.benchmark, True
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                self._steps()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._steps()
        torch.backends.cudnn.benchmark = chosen
        self.run(self.block)
        self.reset()

    def run(self, steps: int) -> None:
        """Advance so many steps, a multiple of the block, and wait for the device."""
        if steps % self.block:
            raise ValueError(f"{steps} steps are not whole blocks of {self.block}")
        for _ in range(steps // self.block):
            self.now_indices.copy_(self.indices[self.position])
            if self.hashed:
                self.now_keys.copy_(self.keys[self.position])
            self.graph.replay()
            self.position = (self.position + 1) % len(self.indices)
        torch.cuda.synchronize()

    def reset(self) -> None:
        """Back to the initial parameters and the first step."""
        restart(self.network, self.problem)
        self.position = 0

    def parameters(self) -> dict[str, Floats]:
        """Name -> [1, ...]."""
        return numbers(self.network)

    def _steps(self) -> None:
        flat = self.now_indices.flatten()
        images = self.images.index_select(0, flat).view(self.block, -1, *self.images.shape[1:])
        labels = self.labels.index_select(0, flat).view(self.block, -1)
        for step in range(self.block):
            if self.hashed:
                self.network.dropout.key = self.now_keys[step]
                restart_calls(self.network)
            loss = F.cross_entropy(self.network(images[step]), labels[step])
            gradient = torch.autograd.grad(loss, self.weights)
            with torch.no_grad():
                torch._foreach_add_(self.weights, gradient, alpha=-float(self.problem.lr[0]))
