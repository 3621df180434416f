"""Everything that `tiebreak cost` knows by name: layers, small nets of the theory, every design of the catalog.

The parts listed here have formulas, which stand in `symbolic` and `network_costs`. Formulas are an addition: a design
of the catalog that is not listed is counted and measured at the sizes of `family_sizes`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tiebreak.errors import TiebreakError, nearest
from tiebreak.theory.family_sizes import without_formula
from tiebreak.theory.part_types import FormulaPart, Part, Variable

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
    "M": Variable("height of the filter", 3),
    "N": Variable("width of the filter", 3),
}
LONG, TALL = (256, 16384), (28, 448)


def _sequence(name: str, line: str, variables: Mapping[str, Variable], span: tuple[int, int] = LONG) -> FormulaPart:
    return FormulaPart(name=name, line=line, variables=variables, vary="L", span=span)


def _image(name: str, line: str, variables: Mapping[str, Variable], span: tuple[int, int] = TALL) -> FormulaPart:
    return FormulaPart(name=name, line=line, variables=variables, vary="H", span=span)


def _classifier(name: str, line: str, classes: int) -> FormulaPart:
    variables = {**IMAGE, "Y": Variable("classes", classes)}
    return FormulaPart(name=name, line=line, variables=variables, vary="H", span=TALL, family="classifier")


_ALL = (
    _sequence("attention", "softmax attention, by torch's kernel", {"L": LENGTH, "D": WIDTH}),
    _sequence("attention-causal", "causal softmax attention", {"L": LENGTH, "D": WIDTH}),
    _sequence("attention-naive", "softmax attention written out: L² weights", {"L": LENGTH, "D": WIDTH}, (256, 8192)),
    _sequence("taylor", "Taylor attention with symmetric features", TAYLOR),
    _sequence("taylor-causal", "causal Taylor attention, in chunks", TAYLOR),
    _sequence("taylor-full", "Taylor attention with every ordered feature", FULL),
    _sequence("single-head", "one head: projections without biases, then attention", MODEL, (256, 4096)),
    _sequence(
        "multi-head",
        "h heads that share that width: equal parameters",
        {**MODEL, "h": Variable("heads", 8)},
        (256, 4096),
    ),
    _sequence(
        "bilinear",
        "the attention of the translator: T queries, L states",
        {
            "L": Variable("length of the memory", 20),
            "T": Variable("queries", 20),
            "Q": Variable("width of queries", 128),
            "D": Variable("width of the memory", 128),
            "O": Variable("width of outputs", 128),
        },
        (20, 2560),
    ),
    _image("pixels", "attention between the pixels of an image (report R3)", {k: IMAGE[k] for k in "HW"}, (14, 224)),
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
    FormulaPart(
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
    FormulaPart(
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
    _image("conv-net", "the convolution of report R3, 2x2 pooling and 3 classes, no biases", FILTERED),
    _image("dense-net", "the fully connected net of report R3 with as many hidden units", FILTERED, (28, 112)),
    _classifier("cnn-pool", "two convolutions with 2x2 max pooling (reports R0 and R1)", 4),
    _classifier("cnn-strided", "cnn-pool with stride 2 instead of pooling", 4),
    _classifier("cnn-pool-unpadded", "cnn-pool without padding (report R2)", 4),
    _classifier("cnn-kuzushiji", "a larger cnn-pool (report R3)", 10),
    _classifier("mlp", "fully connected, as many parameters as cnn-pool", 4),
    _classifier("attention-rows", "attention between an image's rows, 4 heads", 10),
)
PARTS: Mapping[str, FormulaPart] = {part.name: part for part in _ALL}


def find_part(name: str) -> Part:
    """A part by name, with formulas or without.

    >>> PARTS["multi-head"].value("parameters", {"d": 64})
    12288
    """
    known: Mapping[str, Part] = {**without_formula(PARTS), **PARTS}
    if name not in known:
        raise TiebreakError(f"no layer or design is called {name!r}; {nearest(name, known)}")
    return known[name]
