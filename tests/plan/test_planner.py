from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import bad_studies, tiny
from tiebreak.errors import TiebreakError
from tiebreak.plan.planner import data_checksum, find_plan, make_plan, plan_inputs
from tiebreak.plan.runs import PLAN_FILE, Plan
from tiebreak.study.schema import Study

Make = Callable[..., Study]
POOL, STRIDED, PAIR = bad_studies.POOL, bad_studies.STRIDED, bad_studies.PAIR
SHUFFLED = {"name": "shuffled", "design": "cnn-pool", "options": {"shuffle_pixels": True}}
SHIFTED = {"name": "shifted", "design": "cnn-pool", "evaluation": {"shift": 2}}
LONGER = {"name": "longer", "design": "cnn-pool", "epochs_times": 2}

KEEPS = """
from torch import nn

class Keeps(nn.Module):
    def __init__(self, shape, mixes=False, parts=False):
        super().__init__()
        self.out = nn.Linear(shape.channels * shape.height * shape.width, shape.classes)
        self.mixes = mixes
        self.norm = nn.BatchNorm1d(1) if parts else None

    def forward(self, images):
        logits = self.out(images.flatten(1))
        if self.norm:
            logits = self.norm(logits.reshape(-1, 1)).reshape(logits.shape)
        self.last = logits - logits.mean(0) if self.mixes else logits
        return self.last

DESIGNS = {"keeps": Keeps}
"""


@pytest.fixture
def plan_of(tiny_study: Make, tiny_data_dir: Path) -> Callable[..., Plan]:
    def plan(**changes: Any) -> Plan:
        return make_plan(tiny_study(**changes), tiny_data_dir)

    return plan


@pytest.fixture(scope="module")
def oct_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small octmnist.npz: four classes, and enough test images for the 529 of the reports."""
    folder = tmp_path_factory.mktemp("oct")
    arrays: dict[str, Any] = {}
    for split, size in {"train": 8, "val": 4, "test": 1000}.items():
        arrays[f"{split}_images"] = np.zeros((size, 28, 28), np.uint8)
        arrays[f"{split}_labels"] = (np.arange(size) % 4).astype(np.uint8)[:, None]
    np.savez(folder / "octmnist.npz", **arrays)
    return folder


@pytest.fixture
def own_data(tmp_path: Path) -> Path:
    """A data folder that a test may change."""
    (tmp_path / "data").mkdir()
    return tiny.write_data(tmp_path / "data")


def term(plan: Plan, name: str) -> tuple[bool | None, str]:
    return next((item.equal, item.value) for item in plan.terms if item.name == name)


def unequal(plan: Plan) -> set[str]:
    return {item.name for item in plan.terms if not item.equal}


def identities(plan: Plan, arm: str) -> Iterator[str]:
    yield from plan.arm(arm).runs.values()


def test_a_plan_holds_every_arm_setting_and_seed(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(**bad_studies.TUNED)
    assert len(plan.runs) == 2 * 2 * 2
    assert set(plan.arm("pool").runs) == {"lr=0.1/0", "lr=0.1/1", "lr=0.01/0", "lr=0.01/1"}
    run = plan.runs[plan.arm("strided").run({"lr": 0.01}, 1)]
    assert (run.design, run.seed, run.hypers["lr"], run.setting) == ("cnn-strided", 1, 0.01, {"lr": 0.01})
    assert all(identity == run.identity for identity, run in plan.runs.items())


def test_two_designs_get_the_same_seeds_data_and_hyper_parameters(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of()
    for seed in range(2):
        first, second = (plan.runs[plan.arm(arm).run({}, seed)] for arm in ("pool", "strided"))
        differing = {name for name in type(first).model_fields if getattr(first, name) != getattr(second, name)}
        assert differing == {"design", "source"}


def test_one_design_under_two_task_options_is_two_trainings(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(arms=[POOL, SHUFFLED], comparisons=[{"a": "pool", "b": "shuffled"}])
    assert len(plan.runs) == 4
    assert unequal(plan) == {"task options"}
    assert "shuffle_pixels" in term(plan, "task options")[1]


def test_two_ways_to_evaluate_share_their_trained_runs(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(arms=[POOL, SHIFTED], comparisons=[{"a": "pool", "b": "shifted"}])
    assert len(plan.runs) == 2
    assert [*identities(plan, "pool")] == [*identities(plan, "shifted")]
    assert (plan.arm("pool").evaluation, plan.arm("shifted").evaluation) == ("default", "shift=2")
    assert all(run.evaluations == ({}, {"shift": 2}) for run in plan.runs.values())
    assert unequal(plan) == {"evaluation"}


def test_an_evaluation_option_at_its_default_is_no_other_evaluation(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(arms=[POOL, {**SHIFTED, "evaluation": {"shift": 0}}], comparisons=[{"a": "pool", "b": "shifted"}])
    assert all(run.evaluations == ({},) for run in plan.runs.values())


def test_an_interaction_is_planned(plan_of: Callable[..., Plan]) -> None:
    arms = [POOL, STRIDED, {**SHUFFLED, "name": "pool-2"}, {**SHUFFLED, "name": "strided-2", "design": "cnn-strided"}]
    plan = plan_of(arms=arms, comparisons=[PAIR, bad_studies.INTERACTION])
    assert len(plan.runs) == 8
    assert len({identity for arm in plan.arms for identity in arm.runs.values()}) == 8


def test_a_best_setting_is_planned(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(**bad_studies.TUNED, arms=[POOL], comparisons=[bad_studies.SETTING])
    assert len(plan.runs) == 4
    assert term(plan, "tuning") == (True, "lr in 0.1, 0.01")


def test_different_budgets_share_a_trajectory(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(arms=[POOL, LONGER], comparisons=[{"a": "pool", "b": "longer"}])
    assert len(plan.runs) == 4
    assert len({run.trajectory for run in plan.runs.values()}) == 2
    assert unequal(plan) == {"budget"}
    assert term(plan, "budget") == (False, "1 epoch, batches of 8; longer: epochs=2 instead of 1")


def test_a_schedule_over_the_budget_does_not_share_a_trajectory(plan_of: Callable[..., Plan]) -> None:
    comparisons, optimiser = [{"a": "pool", "b": "longer"}], {"schedule": {"kind": "cosine"}}
    plan = plan_of(arms=[POOL, LONGER], comparisons=comparisons, optimiser=optimiser)
    assert len({run.trajectory for run in plan.runs.values()}) == 4


def test_another_arm_changes_nothing_about_the_others(plan_of: Callable[..., Plan]) -> None:
    few, many = plan_of(), plan_of(arms=[SHUFFLED, STRIDED, LONGER, SHIFTED, POOL])
    for arm in ("pool", "strided"):
        assert few.arm(arm).model_copy(update={"differences": None}) == many.arm(arm).model_copy(
            update={"differences": None}
        )
    assert few.runs.keys() <= many.runs.keys()


def test_more_seeds_and_settings_keep_the_runs_that_are_there(plan_of: Callable[..., Plan]) -> None:
    few = plan_of(fixed=None, grid={"lr": [0.1]})
    many = plan_of(fixed=None, grid={"lr": [0.01, 0.1]}, seeds=5, margin=0.5, question="Another?")
    assert few.runs.keys() < many.runs.keys()


def test_identities_do_not_depend_on_the_order_of_a_table(plan_of: Callable[..., Plan]) -> None:
    first = plan_of(fixed={"lr": 0.1, "momentum": 0.9}, options={"divisor": 256, "shuffle_pixels": False})
    second = plan_of(fixed={"momentum": 0.9, "lr": 0.1}, options={"shuffle_pixels": False, "divisor": 256})
    assert first.runs.keys() == second.runs.keys()
    grids: list[dict[str, list[float]]] = [{"lr": [0.1], "dropout": [0.5]}, {"dropout": [0.5], "lr": [0.1]}]
    assert len({frozenset(plan_of(fixed=None, grid=grid).runs) for grid in grids}) == 1


def test_a_value_is_the_same_run_fixed_or_tuned(plan_of: Callable[..., Plan]) -> None:
    assert plan_of(fixed={"lr": 0.1}).runs.keys() == plan_of(fixed=None, grid={"lr": [0.1]}).runs.keys()


def test_parameters_are_those_of_the_reports(tiny_study: Make, oct_dir: Path) -> None:
    arms = [POOL, STRIDED, {"name": "unpadded", "design": "cnn-pool-unpadded"}]
    plan = make_plan(tiny_study(data="octmnist", protocol="as-reported", arms=arms), oct_dir)
    assert [arm.parameters for arm in plan.arms] == [224_892, 224_892, 168_572]
    assert all(arm.flops for arm in plan.arms)
    assert term(plan, "parameters") == (False, "168,572 and 224,892")
    assert plan.data.sizes == {"train": 8, "val": 4, "test": 529}


def test_the_audited_protocol_uses_the_whole_test_split(tiny_study: Make, oct_dir: Path) -> None:
    assert make_plan(tiny_study(data="octmnist"), oct_dir).data.sizes["test"] == 1000


def test_embedded_data_has_nothing_to_warn_about(tiny_study: Make) -> None:
    study = tiny_study(data="mnist5k", seeds=6)
    plan = make_plan(study, None)
    assert plan.data.official is None
    assert plan.warnings == ()
    assert plan.data.checksum == data_checksum(study, None)


def test_missing_data_is_one_line_with_a_remedy(tiny_study: Make, tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match=r"octmnist\.npz.*tiebreak data fetch octmnist.*--data-dir"):
        make_plan(tiny_study(data="octmnist"), tmp_path)


def test_making_a_plan_twice_gives_the_same_plan(plan_of: Callable[..., Plan]) -> None:
    assert plan_of() == plan_of()


def test_the_inputs_name_study_and_data(tiny_study: Make, own_data: Path) -> None:
    study = tiny_study()
    before = plan_inputs(study, own_data)
    assert before == plan_inputs(tiny_study(), own_data)
    assert before != plan_inputs(study.changed(seeds=3), own_data)
    tiny.write_data(own_data, key=1)
    assert before != plan_inputs(study, own_data)


def marked(folder: Path, plan: Plan) -> None:
    """Keep the plan with a mark that a plan made anew would not have."""
    marked = plan.model_copy(update={"warnings": ("kept",)})
    (folder / PLAN_FILE).write_text(marked.model_dump_json())


def test_a_stored_plan_is_used_while_nothing_changed(tiny_study: Make, own_data: Path, tmp_path: Path) -> None:
    marked(tmp_path, make_plan(tiny_study(), own_data))
    assert find_plan(tiny_study(), tmp_path, own_data).warnings == ("kept",)


def test_a_stored_plan_is_remade_when_the_study_changed(tiny_study: Make, own_data: Path, tmp_path: Path) -> None:
    marked(tmp_path, make_plan(tiny_study(), own_data))
    plan = find_plan(tiny_study(seeds=3), tmp_path, own_data)
    assert plan.warnings != ("kept",)
    assert len(plan.runs) == 6


def test_a_stored_plan_is_remade_when_the_data_changed(tiny_study: Make, own_data: Path, tmp_path: Path) -> None:
    before = make_plan(tiny_study(), own_data)
    marked(tmp_path, before)
    tiny.write_data(own_data, key=1)
    plan = find_plan(tiny_study(), tmp_path, own_data)
    assert plan.warnings != ("kept",)
    assert plan.runs.keys().isdisjoint(before.runs)


@pytest.mark.parametrize("content", ["", "{}", "not a plan"])
def test_a_stored_plan_that_is_damaged_is_remade(
    content: str, tiny_study: Make, own_data: Path, tmp_path: Path
) -> None:
    (tmp_path / PLAN_FILE).write_text(content)
    assert find_plan(tiny_study(), tmp_path, own_data) == make_plan(tiny_study(), own_data)


def test_an_arm_may_have_an_optimiser_and_a_window_of_its_own(tmp_path: Path) -> None:
    plan = make_plan(Study.model_validate(tiny.language_content()), tiny.write_text(tmp_path))
    kinds = {arm.name: plan.runs[next(iter(arm.runs.values()))].optimiser.kind for arm in plan.arms}
    assert kinds == {"one": "sgd", "two": "sgd-summed"}
    assert plan.arms[0].shape == {"words": 9, "streams": 2, "window": 3}
    flops = [arm.flops or 0 for arm in plan.arms]
    assert flops[1] == 2 * flops[0] > 0  # of a window, which is twice as long
    assert [arm.cannot_fuse for arm in plan.arms] == ["", ""]


def test_a_network_that_keeps_what_it_computed_is_checked_as_any_other(
    tiny_study: Make, own_data: Path, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(KEEPS)

    def plan(*, batch: int = 8, **build: bool) -> Plan:
        arms = [POOL, {"name": "mine", "design": "keeps", "build": build}]
        study = tiny_study(
            arms=arms, comparisons=[{"a": "pool", "b": "mine"}], designs_from=str(tmp_path / "own.py"),
            budget={"epochs": 1, "batch": batch},
        )  # fmt: skip
        return make_plan(study, own_data)

    assert plan().arm("mine").cannot_fuse == ""
    with pytest.raises(TiebreakError, match="depends on the others of the batch"):
        plan(mixes=True)
    assert plan(parts=True).arm("mine").cannot_fuse == ""
    with pytest.raises(TiebreakError, match=r"rows that are not the examples.* padded.*use a batch that divides"):
        plan(parts=True, batch=7)


def test_windows_that_are_too_long_in_one_arm_are_refused(tmp_path: Path) -> None:
    content = tiny.language_content()
    content["arms"][1]["options"] = {"window": 4000}
    with pytest.raises(TiebreakError, match=r"4,000.*8,001"):
        make_plan(Study.model_validate(content), tiny.write_text(tmp_path))
