from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from pydantic import ValidationError

from support import bad_studies, tiny
from tiebreak.errors import TiebreakError
from tiebreak.plan.planner import make_plan
from tiebreak.study import parsing
from tiebreak.study.schema import Study

Make = Callable[..., Study]

EVERYTHING: dict[str, Any] = {
    "data": "octmnist",
    "protocol": "as-reported",
    "seeds": 4,
    "options": {"divisor": 256},
    "optimiser": {"kind": "adamw", "schedule": {"kind": "cosine", "warmup_epochs": 1, "floor": 0.0}},
    "fixed": {"weight_decay": 1e-4},
    "grid": {"lr": [0.1, 1e-5], "dropout": [0.0, 0.7]},
    "arms": [
        {"name": "pool", "design": "cnn-pool", "epochs_times": 2, "fixed": {"momentum": 0.9}},
        {"name": "strided", "design": "cnn-strided", "evaluation": {"shift": -2}, "protocol": "audited"},
        {"name": "pool-2", "design": "cnn-pool", "options": {"shuffle_pixels": True}},
        {"name": "strided-2", "design": "cnn-strided", "options": {"shuffle_pixels": True}},
    ],
    "comparisons": [
        bad_studies.PAIR,
        {**bad_studies.INTERACTION, "metric": "loss", "margin": 0.1},
        {**bad_studies.SETTING, "name": "best", "expect": {"dropout": 0.7, "lr": 0.1}},
    ],
    "claims": [{**bad_studies.CLAIM, "source": ["R0", "R1"]}],
    "reported": [{**bad_studies.REPORTED, "setting": {"lr": 0.1, "dropout": 0.0}}],
    "quick": {"data": "mnist5k", "protocol": "audited", "seeds": 2, "epochs": 1, "batch": 4},
}


def test_a_resolved_file_says_the_same_as_the_study(tiny_study: Make) -> None:
    for study in (tiny_study(), tiny_study(**EVERYTHING), tiny_study(**EVERYTHING).quickened(), Study.load("pooling")):
        assert parsing.validate(Study, parsing.load_toml(parsing.to_toml(study), "again"), "again") == study


def test_a_resolved_file_has_every_default_written_out(tiny_study: Make) -> None:
    text = parsing.to_toml(tiny_study())
    for line in ('protocol = "audited"', 'kind = "sgd"', "floor = 0.01", 'name = "pool vs strided"', 'kind = "pair"'):
        assert line in text


def test_a_study_cannot_be_changed_in_place(tiny_study: Make) -> None:
    with pytest.raises(ValidationError):
        tiny_study().seeds = 3  # type: ignore[misc]


def test_settings_are_all_points_of_the_grid_in_the_order_of_the_file(tiny_study: Make) -> None:
    points = itertools.product([0.1, 1e-5], [0.0, 0.7])
    assert tiny_study(**EVERYTHING).settings() == [{"lr": lr, "dropout": rate} for lr, rate in points]


def test_a_study_without_a_grid_has_one_setting(tiny_study: Make) -> None:
    assert tiny_study().settings() == [{}]


def test_an_arm_is_found_by_name_or_answered_with_the_nearest(tiny_study: Make) -> None:
    assert tiny_study().arm("strided").design == "cnn-strided"
    with pytest.raises(TiebreakError, match=r"'stride'.*'strided'"):
        tiny_study().arm("stride")


def test_an_arm_may_have_epochs_of_its_own(tiny_study: Make) -> None:
    study = tiny_study(**EVERYTHING)
    assert [study.epochs(arm) for arm in study.arms] == [2, 1, 1, 1]


def test_the_goal_belongs_to_the_metric(tiny_study: Make) -> None:
    assert tiny_study().goal() == "max"
    assert tiny_study().goal("loss") == "min"
    assert tiny_study(metric="loss").goal() == "min"


def test_changing_nothing_gives_the_same_study(tiny_study: Make) -> None:
    for study in (tiny_study(**EVERYTHING), Study.load("pooling")):
        assert study.changed() == study


def test_seeds_epochs_and_data_are_changed_alone(tiny_study: Make) -> None:
    study = tiny_study()
    assert study.changed(seeds=9) == tiny_study(seeds=9)
    assert study.changed(epochs=7) == tiny_study(budget={"epochs": 7, "batch": 8})
    assert study.changed(data="mnist5k") == tiny_study(data="mnist5k")


def test_a_path_given_as_data_is_the_same_from_every_folder(
    tiny_study: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "images").mkdir()
    monkeypatch.chdir(tmp_path)
    assert tiny_study().changed(data="./images").data == str((tmp_path / "images").resolve())
    assert tiny_study().changed(data="./elsewhere").data == "./elsewhere"  # below --data-dir, or a mistake: told later


def test_a_changed_study_is_checked_again(tiny_study: Make) -> None:
    with pytest.raises(TiebreakError, match=r"study tiny: seeds: .* 1, not 0"):
        tiny_study().changed(seeds=0)
    with pytest.raises(TiebreakError, match=r"study tiny: budget\.epochs: .*-1"):
        tiny_study().changed(epochs=-1)
    with pytest.raises(TiebreakError, match=r"study tiny: data: .*'mnis'.*'mnist'"):
        tiny_study().changed(data="mnis")


def test_a_protocol_for_other_data_gives_way_to_audited() -> None:
    study = Study.load("pooling")
    assert study.protocol == "as-reported"
    assert study.changed(data="mnist5k").protocol == "audited"
    assert study.changed(data="octmnist").protocol == "as-reported"
    assert study.changed(seeds=2).protocol == "as-reported"


def test_the_quick_version_changes_what_its_table_says_and_nothing_else(tiny_study: Make) -> None:
    quick = tiny_study(**EVERYTHING).quickened()
    assert (quick.data, quick.protocol, quick.seeds) == ("mnist5k", "audited", 2)
    assert (quick.budget.epochs, quick.budget.batch) == (1, 4)
    changed = {"data", "protocol", "seeds", "budget"}
    whole = tiny_study(**EVERYTHING).model_dump(exclude=changed)
    assert quick.model_dump(exclude=changed) == whole


def test_the_quick_version_may_have_a_grid_of_its_own(tiny_study: Make) -> None:
    study = tiny_study(**bad_studies.TUNED, quick={"grid": {"lr": [0.2]}})
    assert study.quickened().settings() == [{"lr": 0.2}]
    assert len(study.settings()) == 2


def test_without_a_quick_table_the_quick_version_is_the_study(tiny_study: Make) -> None:
    assert tiny_study().quickened() == tiny_study()


def test_the_quick_version_may_leave_arms_out_with_all_that_rests_on_them(tiny_study: Make) -> None:
    study = tiny_study(**{**EVERYTHING, "quick": {"data": "mnist5k", "protocol": "audited", "without": ["pool-2"]}})
    quick = study.quickened()
    assert [arm.name for arm in quick.arms] == ["pool", "strided", "strided-2"]
    assert [item.kind for item in quick.comparisons] == ["pair", "setting"]
    assert quick.quickened() == quick


OWN_DESIGNS = """
from torch import nn

class MyNet(nn.Sequential):
    def __init__(self, shape, width=4):
        pixels = shape.channels * shape.height * shape.width
        super().__init__(nn.Flatten(), nn.Linear(pixels, width), nn.ReLU(), nn.Linear(width, shape.classes))

DESIGNS = {"my-net": MyNet}
"""


def own_study(folder: Path, code: str | None, **changes: Any) -> Study:
    arms = [{"name": "pool", "design": "my-net", "build": {"width": 3}}, bad_studies.STRIDED]
    (folder / "study.toml").write_text(tomli_w.dumps(tiny.content(designs_from="nets.py", arms=arms, **changes)))
    if code is not None:
        (folder / "nets.py").write_text(code)
    return Study.load(str(folder / "study.toml"))


def test_own_designs_are_found_beside_the_study_and_planned(tmp_path: Path, tiny_data_dir: Path) -> None:
    study = own_study(tmp_path, OWN_DESIGNS)
    assert study.designs_from == str(tmp_path / "nets.py")
    plan = make_plan(study, tiny_data_dir)
    assert plan.arm("pool").parameters == 28 * 28 * 3 + 3 + 3 * 2 + 2
    (tmp_path / "nets.py").write_text(OWN_DESIGNS.replace("ReLU", "Tanh"))
    assert plan.runs.keys() & make_plan(study, tiny_data_dir).runs.keys() == set(plan.arm("strided").runs.values())


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (None, "nets.py: No such file"),
        ("x = 1", "nets.py: no DESIGNS"),
        ("def broken(:", "nets.py:1: "),
        ("DESIGNS = {name: 1 for name in 'ab'}", "nets.py: DESIGNS should be"),
        ("DESIGNS = {'my-nett': 1}", "'my-nett'"),
        ("DESIGNS = {'my-net': 1, 'cnn-pool': 2}", "designs_from: 'cnn-pool'"),
    ],
    ids=["missing", "none", "syntax", "not a literal", "another name", "name of the catalog"],
)
def test_a_file_of_designs_that_cannot_be_used_is_one_line(code: str | None, line: str, tmp_path: Path) -> None:
    with pytest.raises(TiebreakError) as caught:
        own_study(tmp_path, code)
    assert str(caught.value).startswith(f"{tmp_path / 'study.toml'}: ")
    assert line in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_study_can_be_built_from_python_values() -> None:
    assert Study.model_validate(tiny.content()) == parsing.validate(Study, tiny.content(), "x")


def test_the_quick_version_may_change_the_tasks_options_and_single_arms() -> None:
    quick = {"options": {"streams": 5}, "build": {"hidden": 32}, "build_of": {"two": {"hidden": 8}}}
    study = Study.model_validate(tiny.language_content(quick=quick)).quickened()
    assert study.options == {"streams": 5, "window": 3}
    assert [arm.build for arm in study.arms] == [{"embedding": 4, "hidden": 32}, {"embedding": 4, "hidden": 8}]


def test_an_arm_may_have_an_optimiser_of_its_own() -> None:
    study = Study.model_validate(tiny.language_content())
    assert [study.optimiser_of(arm).kind for arm in study.arms] == ["sgd", "sgd-summed"]
