"""Tiebreak settles whether one neural-network design is really better than another, by how much and at what cost.

>>> import tiebreak as tb
>>> study = tb.Study.load("pooling").quickened()
>>> result = tb.run(study, "runs/pooling")      # doctest: +SKIP
>>> result.verdict.answer                       # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tiebreak.api import open_result, run
    from tiebreak.errors import TiebreakError
    from tiebreak.exchange.score_sources import read_scores
    from tiebreak.own_functions import compare
    from tiebreak.plan.planner import make_plan
    from tiebreak.study.schema import Study
    from tiebreak.study_result import Result
    from tiebreak.trained import load_network
    from tiebreak.verdict.scores import compare_scores

__version__ = "0.1.0"

# Imported when first asked for, so that `import tiebreak` and `tiebreak --help` stay quick.
_HOMES = {
    "Result": "tiebreak.study_result",
    "Study": "tiebreak.study.schema",
    "TiebreakError": "tiebreak.errors",
    "compare": "tiebreak.own_functions",
    "compare_scores": "tiebreak.verdict.scores",
    "load_network": "tiebreak.trained",
    "make_plan": "tiebreak.plan.planner",
    "open_result": "tiebreak.api",
    "read_scores": "tiebreak.exchange.score_sources",
    "run": "tiebreak.api",
}

__all__ = [
    "Result",
    "Study",
    "TiebreakError",
    "__version__",
    "compare",
    "compare_scores",
    "load_network",
    "make_plan",
    "open_result",
    "read_scores",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tiebreak' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
