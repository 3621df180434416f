from __future__ import annotations

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.exchange.run_names import compile_pattern, parse_name


@pytest.mark.parametrize(
    "name",
    ["vit-3", "vit_seed3", "vit-seed-3", "vit/seed_3", "vit/seed=3", "vit s3", "vit/3", "vit/3/version_0", "vit-run3"],
)
def test_usual_names_say_arm_and_seed(name: str) -> None:
    assert parse_name(name, None) == {"arm": "vit", "seed": "3"}


def test_a_pattern_says_what_is_what() -> None:
    pattern = compile_pattern("{*}/{arm}.s{seed}")
    assert parse_name("runs/2024/vit-b.s12", pattern)["seed"] == "12"
    assert parse_name("x/vit-b.s12", pattern) == {"arm": "vit-b", "seed": "12"}
    assert parse_name("vit-b", pattern) == {}
    assert parse_name("a+b.s1", compile_pattern("{arm}.s{seed}")) == {"arm": "a+b", "seed": "1"}


@pytest.mark.parametrize("pattern", ["vit", "{arm}{arm}{seed}", "{*}"])
def test_a_pattern_names_arm_and_seed_once(pattern: str) -> None:
    with pytest.raises(TiebreakError, match="--run-name"):
        compile_pattern(pattern)
