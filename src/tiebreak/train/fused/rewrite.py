"""Makes a traced graph use our matrix product on a GPU, and do plain SGD updates without storing the gradient."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import dropwhile

import torch
from torch.fx import Graph, GraphModule, Node

from tiebreak.layers.run_products import OP
from tiebreak.train.fused.joined_products import join_products
from tiebreak.train.fused.repeated_operations import changed_by, root

aten = torch.ops.aten
VIEWS = (aten.view.default, aten._unsafe_view.default, aten.transpose.int, aten.expand.default, aten.permute.default)


# From this many multiplications in one run's product on, the library's kernel is much faster if it may use TF32
# (on an H200 and 5 runs of 1,280 x 512 x 10,000: 0.22 ms, ours 0.84). Between 1e7 and 1e8 nothing was measured.
LARGE = 1 << 26
# Up to this many, a product is written as a sum of products, which the compiler fuses with what comes before and after
# it: that of a batch's losses and weights. With output layers too (16,384), 30 runs of the CNN of the reports were 2 %
# faster on an H200, and 100 were slower.
SMALL = 64


@dataclass(frozen=True)
class Descent:
    """An update that `descend` does instead: which input is the parameter, where the outputs a, b and rate begin."""

    param: int
    first: int


def rewrite(graph: GraphModule, *, compiled: bool = False) -> list[Descent]:
    """Replace batched products by ours, sums of them by one. SGD updates along a product are removed; their factors
    become the last outputs.

    The removed updates follow the graph, one by one: none that something in it reads later, or whose factors change.
    If TF32 is allowed, large products are left to the library; if the graph is compiled, small ones to the compiler.
    """
    nodes = graph.graph
    join_products(nodes)
    if compiled:
        _write_out(nodes)
    inputs = [node for node in nodes.nodes if node.op == "placeholder"]
    output = next(node for node in nodes.nodes if node.op == "output")
    results = list(output.args[0])
    descents = []
    changed = {place for node in nodes.nodes for place in changed_by(node)}
    for node in list(nodes.nodes):
        if node.target is not aten.addcmul.out or node.kwargs.get("value") != -1:
            continue
        param, gradient, rate = node.args[:3]
        found = _product_of(gradient)
        if (
            node.kwargs["out"] is param
            and param in inputs
            and found is not None
            and _same_layout(param, gradient, found)
            and not _read_after(param, node)
            and not any(root(factor) in changed for factor in (*found.all_input_nodes, rate))
        ):
            descents.append(Descent(inputs.index(param), len(results)))
            results += [*found.args, rate]
            nodes.erase_node(node)
    output.args = (results,)
    nodes.eliminate_dead_code()
    for node in list(nodes.nodes):
        if node.target is aten.bmm.default and _ours(node):
            with nodes.inserting_before(node):
                ours = nodes.call_function(OP, node.args)
            node.replace_all_uses_with(ours)
            nodes.erase_node(node)
    graph.recompile()
    return descents


def _write_out(nodes: Graph) -> None:
    """Replace small products a b by sums over k of a[m, k] b[k, n]."""
    for node in list(nodes.nodes):
        if node.target is aten.bmm.default and _multiplications(node) <= SMALL:
            a, b = node.args
            with nodes.inserting_before(node):
                left = nodes.call_function(aten.unsqueeze.default, (a, 2))
                turned = nodes.call_function(aten.transpose.int, (b, 1, 2))
                right = nodes.call_function(aten.unsqueeze.default, (turned, 1))
                terms = nodes.call_function(aten.mul.Tensor, (left, right))
                total = nodes.call_function(aten.sum.dim_IntList, (terms, [3]))
            total.meta["val"] = node.meta["val"]
            node.replace_all_uses_with(total)
            nodes.erase_node(node)


def _multiplications(product: Node) -> int:
    """Of one run."""
    _, rows, columns = product.meta["val"].shape
    return int(rows * columns * product.args[0].meta["val"].shape[2])  # type: ignore[union-attr]


def _read_after(param: Node, update: Node) -> bool:
    """Whether a later operation reads the parameter, such as its moving average: the update must not come after it."""
    _, *later = dropwhile(lambda node: node is not update, update.graph.nodes)
    return any(root(given) is param for node in later for given in node.all_input_nodes)


def _product_of(gradient: Node) -> Node | None:
    """The batched product that a gradient is a view of, if nothing else uses it."""
    node = gradient
    while node.op == "call_function" and node.target in VIEWS:
        if len(node.users) > 1 or not isinstance(node.args[0], Node):
            return None
        node = node.args[0]
    return node if node.target is aten.bmm.default and len(node.users) == 1 and _ours(node) else None


def _ours(product: Node) -> bool:
    """Whether our kernel computes this batched product."""
    large = _multiplications(product) >= LARGE and torch.backends.cuda.matmul.allow_tf32
    return product.meta["val"].dtype == torch.float32 and not large


def _same_layout(param: Node, gradient: Node, found: Node) -> bool:
    """Whether parameter and product have the same memory layout, so that the views between them cancel out."""
    value, view = found.meta["val"], gradient.meta["val"]
    return bool(
        param.meta["val"].is_contiguous()
        and view.stride() == param.meta["val"].stride()
        and view.numel() == value.numel()
        and value.is_contiguous()
    )
