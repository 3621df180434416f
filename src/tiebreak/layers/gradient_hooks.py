"""Hooks on gradients, of parameters and of layers, which only a loop over one run's steps calls."""

from __future__ import annotations

from torch import nn


def hook_obstacle(network: nn.Module) -> str:
    """Why a network that has such hooks cannot be fused; empty: it has none."""
    for name, layer in network.named_modules():
        if layer._backward_hooks or layer._backward_pre_hooks:
            return (
                f"{f'layer {name!r}' if name else 'the network'} has a backward hook, which torch cannot map over runs"
            )
    for name, parameter in network.named_parameters():
        if parameter._backward_hooks:
            return f"the gradient of {name!r} has a hook, which torch does not call for a stack of runs"
    return ""
