"""Everything whose cost has a formula, by name: layers, the nets of the theory, and every design of the catalog.

A part says what it is and which variables it has; `symbolic` and `nets` hold its formulas, which are made when they are
asked for (sympy takes a quarter of a second to import), and `workloads` the real thing that they are compared with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from tiebreak.errors import TiebreakError, nearest

if TYPE_CHECKING:
    from tiebreak.theory.symbolic import Costs, Expr

QUANTITIES = ("parameters", "multiply_adds", "activations", "state")


class Variable(NamedTuple):
    """A size that a formula depends on."""

    meaning: str
    default: int
    least: int = 1


@dataclass(frozen=True, kw_only=True)
class Part:
    """A layer or a design, for one example or one sequence, forwards. Its four quantities are sympy expressions."""

    name: str
    line: str
    variables: Mapping[str, Variable]
    vary: str  # the variable that tells most
    span: tuple[int, int]  # from where to where, unless asked otherwise
    design: bool = False

    @cached_property
    def costs(self) -> Costs:
        """All four."""
        from tiebreak.theory import network_costs, symbolic

        return network_costs.COSTS[self.name](**{name: symbolic.symbol(name) for name in self.variables})

    @property
    def parameters(self) -> Expr:
        """Numbers that are trained."""
        return self.costs.parameters

    @property
    def multiply_adds(self) -> Expr:
        """Of the products: matrices, convolutions, attention. What is done element by element is not counted."""
        return self.costs.multiply_adds

    @property
    def activations(self) -> Expr:
        """Numbers that the forward pass keeps for the backward pass, inputs included and parameters not."""
        return self.costs.activations

    @property
    def state(self) -> Expr:
        """Numbers carried from one element to the next when a sequence comes element by element."""
        return self.costs.state

    def sizes(self, given: Mapping[str, int] | None = None) -> dict[str, int]:
        """Every variable's value: what is given, else the default."""
        given = given or {}
        for name, value in given.items():
            self.check(name)
            if value < (least := self.variables[name].least):
                raise TiebreakError(f"{self.name}: {name} = {value} is too small; it should be {least} or more")
        return {name: given.get(name, variable.default) for name, variable in self.variables.items()}

    def check(self, variable: str) -> None:
        """Refuse a variable that the part does not have."""
        if variable not in self.variables:
            known = ", ".join(f"{name} ({each.meaning})" for name, each in self.variables.items())
            raise TiebreakError(f"{self.name} has no variable {variable!r}; it has {known}")

    def value(self, quantity: str, given: Mapping[str, int] | None = None) -> int:
        """One of QUANTITIES as a number.

        >>> PARTS["multi-head"].value("parameters", {"d": 64})
        12288
        """
        from tiebreak.theory import symbolic

        return symbolic.evaluate(getattr(self.costs, quantity), self.sizes(given))


LENGTH = Variable("length", 1024)
WIDTH = Variable("width of queries, keys and values", 64)
TAYLOR = {
    "L": LENGTH,
    "D": Variable("width of queries and keys", 64),
    "V": Variable("width of values", 64),
    "K": Variable("terms of the exponential", 3),
}
FULL = {**TAYLOR, "D": Variable("width of queries and keys", 16), "K": Variable("terms of the exponential", 3, 3)}
MODEL = {"L": LENGTH, "d": Variable("width of the model", 256)}
IMAGE = {"C": Variable("channels", 1), "H": Variable("height", 28), "W": Variable("width", 28)}
FILTERED = {"H": Variable("height", 28), "W": Variable("width", 28)} | {
    "M": Variable("height of the filter, or of what it would be", 3),
    "N": Variable("width of the filter, or of what it would be", 3),
}
LONG, TALL = (256, 16384), (28, 448)


def _sequence(name: str, line: str, variables: Mapping[str, Variable], span: tuple[int, int] = LONG) -> Part:
    return Part(name=name, line=line, variables=variables, vary="L", span=span)


def _image(
    name: str, line: str, variables: Mapping[str, Variable], span: tuple[int, int] = TALL, *, design: bool = False
) -> Part:
    return Part(name=name, line=line, variables=variables, vary="H", span=span, design=design)


def _design(name: str, line: str, classes: int) -> Part:
    return _image(name, line, {**IMAGE, "Y": Variable("classes", classes)}, design=True)


_ALL = (
    _sequence("attention", "softmax attention, by torch's kernel", {"L": LENGTH, "D": WIDTH}),
    _sequence("attention-causal", "causal softmax attention: each sees those before it", {"L": LENGTH, "D": WIDTH}),
    _sequence(
        "attention-naive", "softmax attention as its formula stands: L² weights", {"L": LENGTH, "D": WIDTH}, (256, 8192)
    ),
    _sequence("taylor", "Taylor attention: symmetric features, right to left", TAYLOR),
    _sequence("taylor-causal", "causal Taylor attention, by chunks", TAYLOR),
    _sequence("taylor-full", "Taylor attention with every ordered feature", FULL),
    _sequence("single-head", "one head: projections without biases, then attention", MODEL, (256, 4096)),
    _sequence(
        "multi-head",
        "h heads sharing that width: as many parameters",
        {**MODEL, "h": Variable("heads", 8)},
        (256, 4096),
    ),
    _sequence(
        "bilinear",
        "the translator's attention of T queries to L states",
        {
            "L": Variable("length of the memory", 20),
            "T": Variable("queries", 20),
            "Q": Variable("width of queries", 128),
            "D": Variable("width of the memory", 128),
            "O": Variable("width of outputs", 128),
        },
        (20, 2560),
    ),
    _image("pixels", "attention between the pixels of an image (R3)", {k: IMAGE[k] for k in "HW"}, (14, 224)),
    _image(
        "conv2d",
        "convolution with biases",
        {
            **IMAGE,
            "O": Variable("filters", 8),
            "M": Variable("height of a filter", 3),
            "N": Variable("width of a filter", 3),
            "s": Variable("stride", 1),
            "z": Variable("padding", 1, 0),
        },
    ),
    Part(
        name="linear",
        line="a linear layer with biases",
        variables={"I": Variable("inputs", 256), "O": Variable("outputs", 256)},
        vary="I",
        span=(256, 16384),
    ),
    _sequence(
        "lstm", "long short-term memory", {"L": LENGTH, "I": Variable("inputs", 64), "H": Variable("hidden", 64)}
    ),
    _sequence(
        "rnn", "a plain recurrent layer", {"L": LENGTH, "I": Variable("inputs", 64), "H": Variable("hidden", 64)}
    ),
    Part(
        name="graph",
        line="graph convolution Â (X W) with self-loops, sparse",
        variables={
            "n": Variable("nodes", 2708),
            "E": Variable("edges", 5278),
            "F": Variable("features", 128),
            "G": Variable("features after it", 16),
        },
        vary="E",
        span=(5278, 168896),
    ),
    _image("conv-net", "R3's convolution, 2x2 pooling and 3 classes, no biases", FILTERED),
    _image("dense-net", "R3's fully connected net with as many hidden units", FILTERED, (28, 112)),
    _design("cnn-pool", "two convolutions with 2x2 max pooling (R0, R1)", 4),
    _design("cnn-strided", "cnn-pool with stride 2 instead of pooling", 4),
    _design("cnn-pool-unpadded", "cnn-pool that lost its padding (R2)", 4),
    _design("cnn-kuzushiji", "a larger cnn-pool (R3)", 10),
    _design("mlp", "fully connected, as many parameters as cnn-pool", 4),
    _design("attention-rows", "attention between an image's rows, 4 heads", 10),
)
PARTS: Mapping[str, Part] = {part.name: part for part in _ALL}


def find_part(name: str) -> Part:
    """A part by name."""
    if name not in PARTS:
        raise TiebreakError(f"no part {name!r} has a formula; {nearest(name, PARTS)}")
    return PARTS[name]
