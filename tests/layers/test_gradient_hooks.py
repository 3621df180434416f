from __future__ import annotations

from torch import nn

from tiebreak.layers.gradient_hooks import hook_obstacle


def test_only_hooks_on_gradients_are_an_obstacle() -> None:
    layer = nn.Linear(2, 2)
    network = nn.Sequential(layer)
    network.register_forward_hook(lambda module, args, output: None)
    assert hook_obstacle(network) == ""
    handle = layer.weight.register_hook(lambda gradient: gradient)  # type: ignore[no-untyped-call]
    assert "'0.weight'" in hook_obstacle(network)
    handle.remove()
    assert hook_obstacle(network) == ""
    network.register_full_backward_hook(lambda module, above, below: None)
    layer.register_full_backward_pre_hook(lambda module, above: None)
    assert hook_obstacle(network).startswith("the network has a backward hook")
    assert hook_obstacle(nn.Sequential(layer)).startswith("layer '0' has a backward hook")
