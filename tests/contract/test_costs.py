"""Every design can be counted, and where there is a formula it equals the count, at three sizes.

Formulas are an addition: a design of the catalog needs none (tests/contract/test_new_design.py).
"""

from __future__ import annotations

import pytest
import torch

from support.families import every_design, family_of, options_of
from tiebreak import catalog
from tiebreak.cost import measure
from tiebreak.models.design import Design, Images, Shape
from tiebreak.study import registry
from tiebreak.theory import network_costs, workloads
from tiebreak.theory.part_types import FormulaPart
from tiebreak.theory.parts import PARTS
from tiebreak.theory.symbolic import evaluate, symbol
from tiebreak.theory.workloads import Workload

with_formulas = [catalog.DESIGNS[name] for name, part in PARTS.items() if part.family is not None]
# Odd sizes, at which a slip by one or a confusion of two variables shows.
SIZES: dict[str, tuple[dict[str, int], ...]] = {
    "attention": ({"L": 1, "D": 3}, {"L": 37, "D": 5}, {"L": 130, "D": 8}),
    "taylor": (
        {"L": 1, "D": 3, "V": 2, "K": 3},
        {"L": 37, "D": 5, "V": 4, "K": 5},
        {"L": 1100, "D": 6, "V": 7, "K": 2},
    ),
    "taylor-causal": (
        {"L": 255, "D": 3, "V": 2, "K": 3},
        {"L": 256, "D": 5, "V": 4, "K": 4},
        {"L": 700, "D": 6, "V": 7, "K": 3},
    ),
    "taylor-full": (
        {"L": 1, "D": 3, "V": 2, "K": 3},
        {"L": 37, "D": 5, "V": 4, "K": 4},
        {"L": 20, "D": 2, "V": 7, "K": 5},
    ),
    "single-head": ({"L": 1, "d": 3}, {"L": 37, "d": 5}, {"L": 130, "d": 8}),
    "multi-head": ({"L": 1, "d": 6, "h": 2}, {"L": 37, "d": 15, "h": 5}, {"L": 130, "d": 8, "h": 1}),
    "bilinear": (
        {"L": 1, "T": 1, "Q": 2, "D": 3, "O": 4},
        {"L": 11, "T": 7, "Q": 5, "D": 3, "O": 2},
        {"L": 7, "T": 13, "Q": 8, "D": 9, "O": 6},
    ),
    "pixels": ({"H": 2, "W": 3}, {"H": 9, "W": 5}, {"H": 28, "W": 20}),
    "conv2d": (
        {"C": 1, "H": 9, "W": 8, "O": 2, "M": 3, "N": 2, "s": 1, "z": 0},
        {"C": 3, "H": 10, "W": 13, "O": 5, "M": 2, "N": 4, "s": 2, "z": 1},
        {"C": 2, "H": 17, "W": 11, "O": 4, "M": 5, "N": 3, "s": 3, "z": 2},
    ),
    "linear": ({"I": 1, "O": 2}, {"I": 17, "O": 5}, {"I": 8, "O": 64}),
    "lstm": ({"L": 2, "I": 2, "H": 3}, {"L": 11, "I": 7, "H": 5}, {"L": 30, "I": 4, "H": 9}),
    "rnn": ({"L": 2, "I": 2, "H": 3}, {"L": 11, "I": 7, "H": 5}, {"L": 30, "I": 4, "H": 9}),
    "graph": (
        {"n": 4, "E": 6, "F": 3, "G": 2},
        {"n": 15, "E": 7, "F": 2, "G": 5},
        {"n": 50, "E": 400, "F": 9, "G": 4},
    ),
    "conv-net": (
        {"H": 6, "W": 5, "M": 2, "N": 3},
        {"H": 28, "W": 20, "M": 5, "N": 3},
        {"H": 11, "W": 17, "M": 3, "N": 2},
    ),
}
SIZES |= {"attention-causal": SIZES["attention"], "attention-naive": SIZES["attention"], "dense-net": SIZES["conv-net"]}
LAYERS = [part for part in PARTS.values() if part.family is None]


def sizes_of(shape: Shape) -> dict[str, int]:
    assert isinstance(shape, Images)
    return {"C": shape.channels, "H": shape.height, "W": shape.width, "Y": shape.classes}


def check(part: FormulaPart, sizes: dict[str, int], workload: Workload) -> None:
    assert measure.parameters(workload.network) == part.value("parameters", sizes)
    with torch.no_grad():
        count = measure.count(workload.call)
    assert count.unknown == ()
    assert count.flops == 2 * part.value("multiply_adds", sizes)
    assert workloads.kept_numbers(workload) == part.value("activations", sizes)


@every_design
@pytest.mark.parametrize("number", [0, 1, 2])
def test_every_design_can_be_counted(design: Design, number: int) -> None:
    shape = family_of(design).shapes[number]
    workload = workloads.design_workload(design.name, shape, options_of(design))
    assert measure.parameters(workload.network) > 0
    with torch.no_grad():
        count = measure.count(workload.call)
    assert count.unknown == ()
    assert count.multiply_adds
    assert workloads.kept_numbers(workload) > 0


@pytest.mark.parametrize("design", with_formulas, ids=lambda design: design.name)
@pytest.mark.parametrize("number", [0, 1, 2])
def test_every_design_costs_what_its_formula_says(design: Design, number: int) -> None:
    shape = family_of(design).shapes[number]
    check(PARTS[design.name], sizes_of(shape), workloads.design_workload(design.name, shape, {}))


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("match", registry.DESIGNS["mlp"].options["match"].choices)
def test_the_mlp_costs_what_its_formula_says_whatever_it_matches(match: str, number: int) -> None:
    shape = family_of(catalog.DESIGNS["mlp"]).shapes[number]
    sizes = sizes_of(shape)
    costs = network_costs.mlp(**{name: symbol(name) for name in sizes}, match=match)
    workload = workloads.design_workload("mlp", shape, {"match": match})
    assert measure.parameters(workload.network) == evaluate(costs.parameters, sizes)
    assert measure.forward_flops(workload.network, shape) == 2 * evaluate(costs.multiply_adds, sizes)


def test_every_design_part_is_a_design_and_every_part_has_a_formula() -> None:
    assert {part.name: part.family for part in PARTS.values() if part.family} == {
        design.name: design.family for design in with_formulas
    }
    assert set(PARTS) == set(network_costs.COSTS)
    assert {part.name for part in LAYERS} == set(SIZES), "give the part three sizes to be counted at"


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("part", LAYERS, ids=lambda part: part.name)
@pytest.mark.filterwarnings("ignore:terms = . is even:UserWarning")
def test_every_layer_costs_what_its_formula_says(part: FormulaPart, number: int) -> None:
    sizes = SIZES[part.name][number]
    assert set(sizes) == set(part.variables)
    check(part, sizes, workloads.build(part.name, sizes))


@pytest.mark.parametrize("name", ["attention", "taylor-causal", "lstm", "cnn-pool"])
def test_building_leaves_the_global_generator_alone(name: str) -> None:
    before = torch.get_rng_state()
    workloads.build(name, PARTS[name].sizes({"L": 8} if "L" in PARTS[name].variables else {}))
    assert torch.equal(before, torch.get_rng_state())
