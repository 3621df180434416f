"""Names joined to code: the only file that does. Importing it changes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from tiebreak.models.cnn import CnnPool, CnnPoolUnpadded, CnnStrided
from tiebreak.models.interfaces import Design
from tiebreak.tasks.classify import Classify
from tiebreak.tasks.interface import Task

DESIGNS: Mapping[str, Design] = {
    "cnn-pool": Design(name="cnn-pool", family="classifier", build=CnnPool),
    "cnn-strided": Design(name="cnn-strided", family="classifier", build=CnnStrided),
    "cnn-pool-unpadded": Design(name="cnn-pool-unpadded", family="classifier", build=CnnPoolUnpadded),
}

TASKS: Mapping[str, Task] = {
    "classify": Classify(),
}
