"""The network cnn-pool or cnn-strided, written in plain PyTorch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from peers.problem import Floats, Problem
from tiebreak.layers.dropout import Dropout


class Plain(nn.Module):
    """Two convolutions, each with 2x2 max pooling (pool 2) or with stride 2 (pool 1), and two hidden layers."""

    def __init__(self, pool: int, dropout: nn.Module, classes: int) -> None:
        super().__init__()
        self.pool = pool
        self.conv1 = nn.Conv2d(1, 8, 3, stride=3 - pool, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=3 - pool)
        self.hidden1 = nn.Linear(576, 320)
        self.dropout = dropout
        self.hidden2 = nn.Linear(320, 120)
        self.out = nn.Linear(120, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits [B, classes] of images [B, 1, 28, 28]."""
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(x, 2) if self.pool == 2 else x
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2) if self.pool == 2 else x
        x = self.dropout(F.relu(self.hidden1(x.flatten(1))))
        return self.out(F.relu(self.hidden2(x)))  # type: ignore[no-any-return]


def lone_network(problem: Problem, device: str, hashed: bool) -> Plain:
    """The network of a problem of one run at its start, with our dropout (`hashed`) or PyTorch's."""
    if len(problem.lr) != 1:
        raise ValueError(f"this peer trains one run at a time, not {len(problem.lr)}: use problem.alone(run)")
    dropout = Dropout(problem.rate) if hashed else nn.Dropout(problem.rate)
    pool = 2 if problem.design == "cnn-pool" else 1
    network = Plain(pool, dropout, problem.params["out.bias"].shape[1]).to(device)
    restart(network, problem)
    return network


def restart(network: nn.Module, problem: Problem) -> None:
    """Copy the initial parameters over the present ones, which stay where they are."""
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(torch.from_numpy(problem.params[name][0]))


def numbers(network: nn.Module) -> dict[str, Floats]:
    """The parameters as arrays [1, ...]."""
    return {name: parameter.detach().cpu().numpy()[None].copy() for name, parameter in network.named_parameters()}
