"""The best setting at an end of the grid: found, said once for all its arms, with a grid that reaches further."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import sample_report
from tiebreak.results.record import Records
from tiebreak.results.tally import Tally
from tiebreak.study import registry
from tiebreak.verdict.grid_edges import SHARES, edge_sentences, edges, next_value, wider_grid
from tiebreak.verdict.model import Edge


def test_an_arm_that_did_best_at_the_largest_rate_says_so() -> None:
    it = sample_report.complete()  # lr in 0.1, 0.01, 0.001; 0.1 is best
    assert it.verdict.designs[0].at_edge == (Edge(name="lr", value=0.1, end="largest", wider=(0.3, 0.1, 0.01, 0.001)),)
    (line,) = edge_sentences(it.verdict.designs)
    assert "every arm" in line
    assert "largest lr" in line
    assert "0.1" in line
    assert wider_grid(it.verdict.designs) == {"lr": (0.3, 0.1, 0.01, 0.001)}
    assert '"end": "largest"' in it.verdict.to_json()


def test_an_arm_that_did_best_inside_the_grid_is_at_no_edge() -> None:
    it = sample_report.complete()
    study = it.study.changed(grid={"lr": (1.0, 0.1, 0.01, 0.001)})
    plan = sample_report.make_plan(study)
    records = it.records  # nothing is stored at 1.0: then the largest that finished is not the largest of the grid
    assert edges(Tally(study, plan, records), "pool") == ()


def test_a_perfect_score_is_no_edge() -> None:
    it = sample_report.complete()
    perfect = {
        trajectory: {key: dataclasses.replace(one, metrics={"val_accuracy": 1.0}) for key, one in epochs.items()}
        for trajectory, epochs in it.records.epochs.items()
    }
    assert edges(Tally(it.study, it.plan, dataclasses.replace(it.records, epochs=perfect)), "pool") == ()


def test_nothing_is_said_of_an_arm_without_results() -> None:
    it = sample_report.empty()
    assert all(not arm.at_edge for arm in it.verdict.designs)
    one = dataclasses.replace(it, records=Records(epochs={}, runs={}, finals={}))
    assert edge_sentences(one.verdict.designs) == []


def test_two_arms_at_two_ends_widen_the_grid_on_both_sides() -> None:
    pool, strided = sample_report.complete().verdict.designs[:2]
    low = Edge(name="lr", value=0.001, end="smallest", wider=(0.1, 0.01, 0.001, 0.0003))
    arms = (pool, strided.model_copy(update={"at_edge": (low,)}))
    assert wider_grid(arms) == {"lr": (0.3, 0.1, 0.01, 0.001, 0.0003)}
    first, second = edge_sentences(arms)
    assert "pool" in first
    assert "smallest" in second


@pytest.mark.parametrize("name", registry.HYPERS)
@given(data=st.data(), largest=st.booleans())
def test_the_next_value_lies_beyond_the_end_and_is_allowed(name: str, data: st.DataObject, largest: bool) -> None:
    hyper = registry.HYPERS[name]
    number = st.floats(hyper.low, min(hyper.high, 10.0)).map(lambda value: float(f"{value:.3g}"))
    values = sorted(data.draw(st.lists(number, min_size=2, max_size=4, unique=True)))
    found = next_value(name, values, largest=largest)
    if found is None:
        return
    assert hyper.low <= found <= hyper.high
    assert found > values[-1] if largest else found < values[0]
    assert name not in SHARES or found < 1
