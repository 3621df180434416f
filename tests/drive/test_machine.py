from __future__ import annotations

import pytest

from tiebreak.drive.machine import Machine, reached
from tiebreak.errors import TiebreakError


def test_a_place_is_local_or_a_ray_cluster() -> None:
    assert Machine().on == "local"
    assert Machine(on="ray://host:10001").on == "ray://host:10001"
    with pytest.raises(TiebreakError, match="ray://HOST:PORT"):
        Machine(on="slurm")


def test_this_machine_is_reached_if_it_has_the_device() -> None:
    with reached(Machine()):
        pass
