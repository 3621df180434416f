"""Sums of products of a traced graph, each made one product.

    A_1 B_1 + ... + A_T B_T = [A_1 ... A_T] [B_1; ...; B_T]

The gradient of a weight that is used at every time step is such a sum: of a recurrent network that is written as a loop
over time, T small products and T - 1 additions of the weight's size. One product over all steps reads and writes the
weight once; what it costs instead, the joined factors, are copies of T steps' states. In mixed precision each term is
rounded to bfloat16 and widened for the sum; the one product is rounded once.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from tiebreak.train.fused.repeated_operations import changed_by, root

aten = torch.ops.aten
FEWEST = 3  # terms from which on joining pays
PRODUCTS = (aten.bmm.default, aten.mm.default)  # of many runs, of a run alone
SHAPES = (aten.view.default, aten._unsafe_view.default, aten.expand.default)


def join_products(nodes: Graph) -> int:
    """Replace sums of at least `FEWEST` products by one product each. Returns how many sums there were."""
    joined = 0
    changes = [(node, changed_by(node)) for node in nodes.nodes if node.op == "call_function"]
    changes = [(node, changed) for node, changed in changes if changed]
    for node in reversed(list(nodes.nodes)):  # a whole sum comes before its parts
        if node.target is not aten.add.Tensor or not node.users:
            continue
        terms = _terms(node)
        if terms is None or len(terms) < FEWEST or len({_factors(term) for term in terms}) > 1:
            continue
        if _changed_before(node, terms, changes):
            continue
        with nodes.inserting_before(node):
            left = _beside(nodes, [term.args[0] for term in terms], axis=-1)
            right = _beside(nodes, [term.args[1] for term in terms], axis=-2)
            product = nodes.call_function(terms[0].target, (left, right))  # type: ignore[arg-type]
            product.meta["val"], total = _like(terms[0]), product
            if node.meta["val"].dtype != product.meta["val"].dtype:
                total = nodes.call_function(aten._to_copy.default, (product,), {"dtype": node.meta["val"].dtype})
                total.meta["val"] = _like(node)
        node.replace_all_uses_with(total)
        joined += 1
        nodes.eliminate_dead_code()
    return joined


def _terms(node: Any, depth: int = 0) -> list[Node] | None:
    """The products that a node is the sum of; None if it is not only that, or if something else needs a part of it."""
    if not isinstance(node, Node) or node.op != "call_function" or (depth and len(node.users) > 1):
        return None
    if node.target in PRODUCTS:
        return [node]
    widened = node.target is aten._to_copy.default and _same_device(node)
    if widened or (node.target in SHAPES and _unchanged(node)):
        return _terms(node.args[0], depth + 1)
    if (turned := _turned(node)) is not None and len(turned.users) == 1 and (back := _turned(turned)) is not None:
        return _terms(back, depth + 1)  # the gradient of a linear layer's weight is transposed twice
    if node.target is not aten.add.Tensor or node.kwargs:
        return None
    found: list[Node] = []
    for part in node.args:
        terms = _terms(part, depth + 1) if _shape(part) == _shape(node) else None
        if terms is None:
            return None
        found += terms
    return found


def _changed_before(total: Node, terms: list[Node], changes: list[tuple[Node, list[Node]]]) -> bool:
    """Whether a factor is changed in place after its product and before the sum, where the one product stands."""
    factors = [(root(factor), term) for term in terms for factor in term.all_input_nodes]
    return any(factor in changed and term < change < total for change, changed in changes for factor, term in factors)


def _factors(product: Node) -> tuple[Any, ...]:
    """What the products of a sum must have in common: runs, rows, columns and type."""
    value = product.meta["val"]
    return (*value.shape, value.dtype)


def _like(node: Node) -> torch.Tensor:
    value: torch.Tensor = node.meta["val"]
    return value.new_empty(value.shape)


def _beside(nodes: Graph, factors: list[Any], axis: int) -> Node:
    """Factors joined along an axis. Transposed ones are joined as they lie in memory, and then transposed."""
    turned = [_turned(factor) for factor in factors]
    if any(each is None for each in turned):
        return _cat(nodes, factors, axis)
    lying = _cat(nodes, turned, -3 - axis)
    made = nodes.call_function(aten.transpose.int, (lying, -2, -1))
    made.meta["val"] = lying.meta["val"].mT
    return made


def _cat(nodes: Graph, factors: list[Any], axis: int) -> Node:
    made = nodes.call_function(aten.cat.default, (factors, axis))
    first = factors[0].meta["val"]
    shape = list(first.shape)
    shape[axis] = sum(each.meta["val"].shape[axis] for each in factors)
    made.meta["val"] = first.new_empty(shape)
    return made


def _turned(factor: Any) -> Node | None:
    """What a factor is the transpose of."""
    while isinstance(factor, Node) and factor.target in SHAPES and _unchanged(factor):
        factor = factor.args[0]
    if not isinstance(factor, Node) or factor.op != "call_function":
        return None
    axes = factor.meta["val"].ndim
    swapped = factor.target is aten.transpose.int and {each % axes for each in factor.args[1:]} == {axes - 2, axes - 1}
    return factor.args[0] if swapped or factor.target is aten.t.default else None  # type: ignore[return-value]


def _unchanged(node: Node) -> bool:
    return _shape(node) is not None and _shape(node) == _shape(node.args[0])


def _shape(node: Any) -> Any:
    value = node.meta.get("val") if isinstance(node, Node) else None
    return None if value is None else value.shape


def _same_device(copy: Node) -> bool:
    """Whether a copy changes the type only."""
    source: Any = copy.args[0]
    return copy.meta["val"].device == source.meta["val"].device and "memory_format" not in copy.kwargs
