"""Designs of the catalog that have no formula: at which sizes `tiebreak cost` counts and measures them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from tiebreak.study import registry
from tiebreak.theory.part_types import Part, Variable


class FamilySizes(NamedTuple):
    """The variables of a family's designs, and which of them is varied by default from where to where."""

    variables: Mapping[str, Variable]
    fields: Mapping[str, str]  # variable -> the field of the family's shape (`tiebreak.models.design`)
    vary: str
    span: tuple[int, int]


FAMILIES: Mapping[str, FamilySizes] = {
    "classifier": FamilySizes(
        variables={
            "C": Variable("channels", 1),
            "H": Variable("height", 28),
            "W": Variable("width", 28),
            "Y": Variable("classes", 10),
        },
        fields={"C": "channels", "H": "height", "W": "width", "Y": "classes"},
        vary="H",
        span=(28, 448),
    ),
    "translator": FamilySizes(
        variables={
            "S": Variable("length of the source", 20, 2),
            "T": Variable("length of the target", 20, 2),
            "P": Variable("symbols of the source", 40, 5),
            "Q": Variable("symbols of the target", 40, 5),
        },
        fields={"S": "source_length", "T": "target_length", "P": "sources", "Q": "targets"},
        vary="S",
        span=(20, 320),
    ),
    "node-classifier": FamilySizes(
        variables={
            "n": Variable("nodes", 1000, 2),
            "E": Variable("edges, counted in both directions", 8192),
            "F": Variable("features of a node", 120),
            "Z": Variable("features that are not 0, of all nodes", 8192),
            "Y": Variable("classes", 4, 2),
        },
        fields={"n": "nodes", "E": "edges", "F": "features", "Z": "entries", "Y": "classes"},
        vary="E",
        span=(8192, 131072),
    ),
    "language": FamilySizes(
        variables={
            "L": Variable("tokens in a window", 32),
            "S": Variable("streams side by side", 1),
            "V": Variable("vocabulary", 2000, 2),
        },
        fields={"L": "window", "S": "streams", "V": "words"},
        vary="L",
        span=(32, 512),
    ),
    "text-classifier": FamilySizes(
        variables={
            "L": Variable("words of a text", 32),
            "V": Variable("vocabulary", 2000, 3),
            "Y": Variable("classes", 2, 2),
        },
        fields={"L": "length", "V": "words", "Y": "classes"},
        vary="L",
        span=(32, 512),
    ),
    "recogniser": FamilySizes(
        variables={
            "L": Variable("frames of a clip", 256, 4),
            "T": Variable("symbols of the transcript", 64, 2),
            "M": Variable("mel bands", 80),
        },
        fields={"L": "frames", "T": "length", "M": "mels"},
        vary="L",
        span=(256, 4096),
    ),
}


def without_formula(taken: Collection[str]) -> dict[str, Part]:
    """The designs of the catalog whose name is not taken: by formulas of their own, or by a layer of the same name."""
    found = {}
    for name, design in registry.DESIGNS.items():
        if name not in taken and design.family in FAMILIES:
            variables, _, vary, span = FAMILIES[design.family]
            found[name] = Part(
                name=name, line=design.line, family=design.family, variables=variables, vary=vary, span=span
            )
    return found
