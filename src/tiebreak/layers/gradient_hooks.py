"""Hooks on the gradients of parameters (`parameter.register_hook`), which only a loop over one run's steps calls."""

from __future__ import annotations

from torch import nn


def hook_obstacle(network: nn.Module) -> str:
    """Why a network whose parameters have such hooks cannot be fused; empty: they have none."""
    for name, parameter in network.named_parameters():
        if parameter._backward_hooks:
            return f"the gradient of {name!r} has a hook, which torch does not call for a stack of runs"
    return ""
