"""The real layers and designs that formulas are compared with; tests/contract/test_costs.py compares them all."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tiebreak.cost import measure
from tiebreak.errors import TiebreakError
from tiebreak.models.design import Images, Words
from tiebreak.theory import workloads
from tiebreak.theory.fit import fit_exponent
from tiebreak.theory.parts import PARTS, find_part


@pytest.mark.parametrize(
    ("part", "low", "high"), [("attention", 1.99, 2.01), ("taylor", 0.99, 1.01), ("taylor-causal", 0.9, 1.2)]
)
def test_exponents_of_what_was_counted(part: str, low: float, high: float) -> None:
    xs, counts = [256, 512, 1024, 2048], []
    for length in xs:
        with torch.no_grad():
            sizes = PARTS[part].sizes({"L": length, "D": 8, **({"V": 4} if part != "attention" else {})})
            counts.append(measure.count(workloads.build(part, sizes).call).flops or 0)
    exponent, *_ = fit_exponent(xs, counts)
    assert low < exponent < high


def test_memory_of_attention_is_quadratic_only_when_naive() -> None:
    held = {}
    for part in ("attention", "attention-naive", "taylor"):
        with torch.no_grad():
            calls = [workloads.build(part, PARTS[part].sizes({"L": length, "D": 8})).call for length in (1024, 2048)]
            held[part] = [measure.peak_bytes(call) for call in calls]
    assert held["attention-naive"][1] > 3.9 * held["attention-naive"][0]
    assert held["attention"][1] < 2.1 * held["attention"][0]
    assert held["taylor"][1] < 2.1 * held["taylor"][0]


@pytest.mark.parametrize("name", ["attention", "taylor-causal", "lstm", "cnn-pool", "gcn"])
def test_building_leaves_the_global_generator_alone_and_is_always_the_same(name: str) -> None:
    part, before = find_part(name), torch.get_rng_state()
    sizes = part.sizes({"L": 8} if "L" in part.variables else {})
    first, second = (workloads.build(name, sizes).network for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_shapes_are_made_of_the_variables_of_the_family() -> None:
    shape = workloads.shape_of("classifier", {"C": 3, "H": 9, "W": 8, "Y": 2})
    assert shape == Images(channels=3, height=9, width=8, classes=2)
    assert workloads.shape_of("language", {"L": 5, "S": 2, "V": 30}) == Words(words=30, streams=2, window=5)


def test_options_that_are_not_given_have_their_defaults() -> None:
    shape = Images(channels=1, height=28, width=28, classes=4)
    default, same, other = (
        measure.parameters(workloads.design_workload("mlp", shape, options).network)
        for options in ({}, {"match": "cnn-pool"}, {"match": "cnn-pool-unpadded"})
    )
    assert default == same != other


def test_kept_numbers_by_hand() -> None:
    network = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))
    x = torch.randn(1, 5)
    assert workloads.kept_numbers(workloads.Workload(call=lambda: network(x), network=network)) == 5 + 7


@pytest.mark.parametrize(
    ("part", "sizes", "message"),
    [
        ("graph", {"n": 5, "E": 11}, "at most 10"),
        ("conv-net", {"H": 3, "M": 3}, "3 x 3"),
        ("conv2d", {"H": 2, "M": 5, "z": 1}, "5 x 3"),
        ("multi-head", {"h": 3, "L": 4}, "3 heads"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(part: str, sizes: dict[str, int], message: str) -> None:
    with pytest.raises(TiebreakError, match=message):
        workloads.build(part, PARTS[part].sizes(sizes))
