"""Every shipped study, and the template of `tiebreak new`, loads, plans and says what to expect of it."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from pathlib import Path

import pytest

from tiebreak.plan.planner import make_plan
from tiebreak.plan.resolve import comparison_count
from tiebreak.study import parsing, registry
from tiebreak.study.schema import Claim, Reported, Study
from tiebreak.verdict.statistics import least_seeds

BUILTIN = parsing.builtin_names()
CLAIM_IDS = "best-lr-sgd pool-beats-stride pool-invariance more-epochs-help"  # of SPEC.md section 8, study `pooling`


def template() -> str:
    return (resources.files("tiebreak.study") / "template.toml").read_text("utf-8")


def test_pooling_ships() -> None:
    assert "pooling" in BUILTIN


@pytest.mark.parametrize("name", BUILTIN)
def test_a_shipped_study_is_called_as_its_file(name: str) -> None:
    assert Study.load(name).name == name


@pytest.mark.parametrize("name", BUILTIN)
def test_the_quick_version_plans_on_embedded_data(name: str) -> None:
    study = Study.load(name).quickened()
    assert registry.DATA[study.data].embedded
    plan = make_plan(study, None)
    for arm in plan.arms:
        assert len(arm.runs) == len(study.settings()) * study.seeds
    assert plan.runs.keys() == {identity for arm in plan.arms for identity in arm.runs.values()}
    assert plan.data.synthetic == (study.task == "transcribe")
    assert ["synthetic speech" in warning for warning in plan.warnings] == [True] * plan.data.synthetic


@pytest.mark.parametrize("name", BUILTIN)
def test_a_shipped_study_has_enough_seeds_to_decide(name: str) -> None:
    for study in (Study.load(name), Study.load(name).quickened()):
        assert study.seeds >= least_seeds(comparison_count(study))


@pytest.mark.parametrize("name", BUILTIN)
def test_the_header_states_command_time_and_expected_result(name: str) -> None:
    study = Study.load(name)
    assert study.about.command.startswith(f"tiebreak run {name}")
    assert re.search(r"\d+ (s|min|h)", study.about.time)
    assert study.about.expected
    text, _ = parsing.find(name)
    header = text[: text.index("\nname = ")]
    assert all(line.startswith("#") or not line for line in header.splitlines())
    assert study.about.command in header
    assert "Expected" in header
    assert re.search(r"\d+ (second|minute|hour)", header)


@pytest.mark.parametrize("name", BUILTIN)
def test_every_claim_and_figure_belongs_to_the_study_as_it_is(name: str) -> None:
    study = Study.load(name)
    longer = {"language-model": 200}  # the budget of the claims: the study is shorter, and gives hints
    items: list[Claim | Reported] = [*study.claims, *study.reported]
    for item in items:
        assert (item.data, item.protocol) == (study.data, study.protocol)
        epochs = study.budget.epochs if isinstance(item, Reported) else longer.get(name, study.budget.epochs)
        assert item.epochs == epochs
        assert item.source


def test_pooling_asks_what_the_reports_asked() -> None:
    study = Study.load("pooling")
    assert (study.budget.epochs, study.budget.batch, study.optimiser.kind) == (15, 8, "sgd")
    assert study.grid == {"lr": (0.1, 0.01, 0.001)}
    assert study.fixed == {}
    assert {claim.id for claim in study.claims} <= set(CLAIM_IDS.split())
    r1 = {(item.arm, item.setting["lr"], item.metric): item.value for item in study.reported if item.source == "R1"}
    assert r1["pool", 0.01, "val_accuracy"] == 0.8719
    assert r1["pool", 0.01, "accuracy"] == 0.8280
    assert r1["pool", 0.01, "train_loss_running"] == 0.5400
    assert r1["strided", 0.01, "accuracy"] == 0.7958


def test_the_template_is_a_study_that_plans_whole_and_quick() -> None:
    study = parsing.validate(Study, parsing.load_toml(template(), "template.toml"), "template.toml")
    assert study.name == "NAME"
    for version in (study, study.quickened()):
        assert make_plan(version, None).runs
    assert study.quickened().budget.epochs < study.budget.epochs


def test_the_template_explains_its_keys() -> None:
    lines = template().splitlines()
    keys = [line for line in lines if re.match(r"(\w+ = |\[)", line)]
    assert sum("#" in line for line in keys) >= 10
    for word in ("margin", "seeds", "[budget]", "[grid]", "[[arms]]", "[[comparisons]]", "[quick]", "--quick"):
        assert word in template()


def test_what_the_template_shows_in_comments_is_valid_when_uncommented(tmp_path: Path) -> None:
    shown = [re.sub(r"^# (?=\[|\w+ = )", "", line) for line in template().splitlines()]
    content = tomllib.loads("\n".join(shown))
    assert [arm["name"] for arm in content["arms"]] == ["pool", "strided", "pool-shuffled", "pool-shifted"]
    assert {item.get("kind", "pair") for item in content["comparisons"]} == {"pair", "interaction", "setting"}
    content["arms"].append({"name": "strided-shuffled", "design": "cnn-strided", "options": {"shuffle_pixels": True}})
    study = parsing.validate(Study, content, "template.toml")
    assert study.optimiser.schedule.kind == "cosine"
    assert study.fixed == {"weight_decay": 1e-4}
