from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import (
    PLAN_FILE,
    DataSummary,
    Monitor,
    Plan,
    PlannedArm,
    Run,
    cohorts,
    digest,
    evaluation_key,
    run_key,
)
from tiebreak.study.augment import Augment
from tiebreak.study.schema import Optimiser, Schedule

RUN = Run(
    design="cnn-pool",
    source="5f1d3c2b4a59687f0e1d",
    build={},
    task="classify",
    options={"divisor": 255, "test_images": "all", "shuffle_pixels": False},
    data="mnist5k",
    checksum="ab" * 32,
    optimiser=Optimiser(),
    hypers={"lr": 0.1, "momentum": 0.0, "dropout": None},
    setting={"lr": 0.1},
    seed=3,
    epochs=15,
    batch=8,
    comparability=1,
    evaluations=({},),
)
CANONICAL = (
    '{"batch":8,"build":{},"checksum":"' + "ab" * 32 + '","comparability":1,"data":"mnist5k","design":"cnn-pool",'
    '"hypers":{"dropout":null,"lr":0.1,"momentum":0.0},"optimiser":{"kind":"sgd","schedule":{"decay_epochs":0,'
    '"floor":0.01,"kind":"constant","warmup_epochs":0}},"options":{"divisor":255,"shuffle_pixels":false,'
    '"test_images":"all"},"seed":3,"source":"5f1d3c2b4a59687f0e1d","task":"classify"}'
)
COSINE = Optimiser(kind="adam", schedule=Schedule(kind="cosine", warmup_epochs=1))
DETERMINING: dict[str, Any] = {
    "design": "cnn-strided",
    "source": "0" * 20,
    "build": {"width": 2},
    "task": "other",
    "options": {**RUN.options, "divisor": 256},
    "data": "mnist",
    "checksum": "cd" * 32,
    "optimiser": Optimiser(kind="adam"),
    "hypers": {**RUN.hypers, "lr": 0.01},
    "seed": 4,
    "epochs": 16,
    "batch": 16,
    "comparability": 2,
    "monitor": Monitor(metric="accuracy", goal="max", patience=2),
    "augment": Augment(shift=1),
    "init": "orthogonal",
    "precision": "float64",
}


def changed(**changes: Any) -> Run:
    return RUN.model_copy(update=changes)


def short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def test_the_trajectory_is_the_hash_of_what_determines_the_numbers() -> None:
    assert RUN.trajectory == short_hash(CANONICAL)
    assert RUN.identity == short_hash(f'["{RUN.trajectory}",15]')


def test_identities_are_those_of_earlier_versions() -> None:
    """A change here orphans every stored result: raise plan.COMPARABILITY instead, and say so."""
    assert RUN.trajectory == "35602b4f672e874ee51d"
    assert RUN.identity == "721316ccd32b358cfea7"
    assert changed(optimiser=COSINE).identity == "64403f2a61789b779a8d"


@pytest.mark.parametrize("field", DETERMINING)
def test_the_identity_changes_with(field: str) -> None:
    assert changed(**{field: DETERMINING[field]}).identity != RUN.identity


def test_every_other_field_leaves_the_identity_alone() -> None:
    assert set(Run.model_fields) - DETERMINING.keys() == {"setting", "evaluations"}
    assert changed(evaluations=({}, {"shift": 2})).identity == RUN.identity
    assert changed(setting={}).identity == RUN.identity


def test_the_identity_does_not_depend_on_the_order_of_keys() -> None:
    options, hypers = dict(reversed(RUN.options.items())), dict(reversed(RUN.hypers.items()))
    assert list(options) != list(RUN.options)
    assert changed(options=options, hypers=hypers).identity == RUN.identity


def test_the_identity_survives_a_file() -> None:
    assert Run.model_validate_json(RUN.model_dump_json()) == RUN
    assert Run.model_validate_json(RUN.model_dump_json()).identity == RUN.identity
    assert Run.model_validate(RUN.model_dump(mode="json")).identity == RUN.identity


def test_a_whole_number_and_the_same_float_are_one_learning_rate() -> None:
    runs = [Run.model_validate({**RUN.model_dump(), "hypers": {"lr": value}}) for value in (1, 1.0)]
    assert runs[0].identity == runs[1].identity


def test_more_epochs_continue_the_trajectory_unless_the_schedule_depends_on_them() -> None:
    assert changed(epochs=30).trajectory == RUN.trajectory
    assert changed(epochs=30, optimiser=COSINE).trajectory != changed(optimiser=COSINE).trajectory


def test_a_run_is_called_by_design_setting_and_seed() -> None:
    assert RUN.label == "cnn-pool lr=0.1 seed 3"


def test_a_digest_is_of_content_not_of_order() -> None:
    assert digest({"a": 1, "b": [1.0, None, "é"]}) == digest({"b": [1.0, None, "é"], "a": 1})
    assert digest([1, 2]) != digest([2, 1])


def test_an_evaluation_is_called_by_its_options() -> None:
    assert evaluation_key({}) == "default"
    assert evaluation_key({"shift": 2, "beam": 3}) == evaluation_key({"beam": 3, "shift": 2}) == "beam=3 shift=2"


def make_plan() -> Plan:
    runs = [changed(seed=seed) for seed in range(2)]
    return Plan(
        study="tiny",
        inputs="0" * 20,
        data=DataSummary(
            name="mnist5k",
            checksum="ab" * 32,
            official=None,
            sizes={"train": 1, "val": 1, "test": 1},
            licence="",
            citation="",
        ),
        arms=(
            PlannedArm(
                name="pool",
                design="cnn-pool",
                evaluation="default",
                runs={run_key(run.setting, run.seed): run.identity for run in runs},
                parameters=1,
                flops=None,
            ),
        ),
        runs={run.identity: run for run in runs},
        terms=(),
    )


def write(folder: Path, content: dict[str, Any]) -> None:
    (folder / PLAN_FILE).write_text(json.dumps(content))


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    plan = make_plan()
    (tmp_path / PLAN_FILE).write_text(plan.model_dump_json(indent=1))
    assert Plan.read(tmp_path) == plan
    assert plan.arm("pool").run({"lr": 0.1}, 1) == changed(seed=1).identity


def test_a_folder_without_a_plan_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match=r"no plan\.json.*--out"):
        Plan.read(tmp_path)


def _other_seed(plan: dict[str, Any]) -> None:
    next(iter(plan["runs"].values()))["seed"] = 7


def _other_rate(plan: dict[str, Any]) -> None:
    next(iter(plan["runs"].values()))["hypers"]["lr"] = 0.5


def _swapped(plan: dict[str, Any]) -> None:
    keys, identities = plan["arms"][0]["runs"].keys(), plan["arms"][0]["runs"].values()
    plan["arms"][0]["runs"] = dict(zip(keys, reversed(identities), strict=True))


def _run_removed(plan: dict[str, Any]) -> None:
    plan["runs"].popitem()


def _other_design(plan: dict[str, Any]) -> None:
    plan["arms"][0]["design"] = "cnn-strided"


def _other_evaluation(plan: dict[str, Any]) -> None:
    plan["arms"][0]["evaluation"] = "shift=2"


@pytest.mark.parametrize("tamper", [_other_seed, _other_rate, _swapped, _run_removed, _other_design, _other_evaluation])
def test_a_plan_that_was_tampered_with_is_refused(tamper: Callable[[dict[str, Any]], None], tmp_path: Path) -> None:
    content = make_plan().model_dump(mode="json")
    tamper(content)
    write(tmp_path, content)
    with pytest.raises(TiebreakError, match=r"plan\.json: .*by hand"):
        Plan.read(tmp_path)


def test_a_plan_with_an_unknown_key_is_one_line(tmp_path: Path) -> None:
    write(tmp_path, {**make_plan().model_dump(mode="json"), "studdy": "x"})
    with pytest.raises(TiebreakError, match=r"plan\.json: studdy: unknown key"):
        Plan.read(tmp_path)
    content = make_plan().model_dump(mode="json")
    next(iter(content["runs"].values()))["sead"] = 1
    write(tmp_path, content)
    with pytest.raises(TiebreakError, match=r"plan\.json: runs.*sead: unknown key"):
        Plan.read(tmp_path)


def test_a_plan_that_is_cut_short_is_one_short_line(tmp_path: Path) -> None:
    (tmp_path / PLAN_FILE).write_text(make_plan().model_dump_json()[:-10])
    with pytest.raises(TiebreakError, match="Invalid JSON") as caught:
        Plan.read(tmp_path)
    assert len(str(caught.value)) < len(str(tmp_path)) + 150
    assert str(caught.value).isprintable()


def test_the_names_of_a_copy_are_its_own() -> None:
    """Names are computed once per run; a copy with another seed must not keep those of the first."""
    first = RUN.model_copy()
    assert (first.identity, first.trajectory) == (RUN.identity, RUN.trajectory)
    other = first.model_copy(update={"seed": 4})
    assert other.identity == Run.model_validate(other.model_dump()).identity != first.identity
    assert other.trajectory != first.trajectory
    assert first == RUN


def test_runs_are_grouped_by_cohort_in_their_order() -> None:
    runs = [
        RUN,
        RUN.model_copy(update={"batch": 9}),
        RUN.model_copy(update={"seed": 4, "hypers": {"lr": 0.5, "momentum": 0.0, "dropout": None}}),
        RUN.model_copy(update={"options": dict(reversed(RUN.options.items()))}),
        RUN.model_copy(update={"optimiser": COSINE}),
    ]
    found = cohorts(runs)
    assert [*found.values()] == [[runs[0], runs[2], runs[3]], [runs[1]], [runs[4]]]
    assert [*found] == [runs[0].cohort, runs[1].cohort, runs[4].cohort]
