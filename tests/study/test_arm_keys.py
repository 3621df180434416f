"""The keys of an arm: `with` is a word of Python, and is written and read under its own name."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tiebreak.study.arm_keys import Arm


def test_with_is_read_and_written_by_its_name() -> None:
    arm = Arm.model_validate({"name": "a", "design": "a", "with": {"arch": "resnet", "depth": 3}})
    assert arm.with_values == {"arch": "resnet", "depth": 3}
    assert arm.model_dump(mode="json")["with"] == {"arch": "resnet", "depth": 3}
    assert "with" not in Arm(name="a", design="b").model_dump()  # an arm of a network has none
    with pytest.raises(ValidationError, match="'with'"):
        Arm.model_validate({"name": "a", "design": "a", "wth": {}})
    with pytest.raises(ValidationError):
        Arm.model_validate({"name": "a", "design": "a", "with_values": {}})
