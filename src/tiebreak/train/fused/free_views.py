"""Lets views of a traced graph be copies where tensors lie in memory otherwise than the trace said.

A trace works on shapes and strides that torch predicts. For the gradients of some activations (ELU and SELU, hardtanh
and ReLU6, hardswish, hardsigmoid, softplus) after a convolution the prediction is wrong, in torch 2.11: the kernel
writes its result in another order, and a view that the trace made of it cannot be made.
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule

from tiebreak.train.fused.repeated_operations import changed_by, root

VIEWS = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default)


def free_views(graph: GraphModule) -> None:
    """Make every view a reshape, except of memory that is changed in place."""
    changed = {place for node in graph.graph.nodes for place in changed_by(node)}
    for node in graph.graph.nodes:
        if node.target in VIEWS and root(node) not in changed:
            node.target = torch.reshape  # takes no longer than the view
    graph.recompile()
