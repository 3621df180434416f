"""How many runs at a time, and which GPUs each sees."""

from __future__ import annotations

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.program.slots import Slots, visible_gpus
from tiebreak.study.program_keys import Program


def slots(cores: int = 1, gpus: float = 0, workers: int | None = None, there: int = 2) -> Slots:
    program = Program(command=("x",), cores=cores, gpus=gpus)
    return Slots(program, workers=workers, core_count=16, gpus=[str(number) for number in range(there)])


@pytest.mark.parametrize(
    ("found", "many"),
    [
        (slots(), 16),
        (slots(cores=4), 4),
        (slots(cores=32), 1),
        (slots(workers=3), 3),
        (slots(gpus=0.25), 8),
        (slots(gpus=1), 2),
        (slots(gpus=2), 1),
        (slots(gpus=0.25, cores=8), 2),
    ],
)
def test_as_many_as_the_machine_has(found: Slots, many: int) -> None:
    assert len(found) == many
    taken = [found.take() for _ in range(many)]
    assert None not in taken
    assert found.take() is None
    found.give_back(taken[0] or 0)
    assert found.take() == taken[0]


def test_the_environment_of_a_run() -> None:
    found = slots(gpus=0.5, cores=2)
    assert [found.environment(place)["CUDA_VISIBLE_DEVICES"] for place in range(4)] == ["0", "1", "0", "1"]
    assert found.environment(0)["OMP_NUM_THREADS"] == "2"
    assert slots(gpus=2, there=4).devices == ["0,1", "2,3"]
    assert slots().environment(0)["CUDA_VISIBLE_DEVICES"] == ""


def test_gpus_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for there in (0, 1):
        with pytest.raises(TiebreakError, match=r"program\.gpus: 2"):
            slots(gpus=2, there=there)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, GPU-x,")
    assert visible_gpus() == ["3", "GPU-x"]
