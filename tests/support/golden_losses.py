"""Losses of every design and update rule after a few steps, with the digest of the code that decides them.

`PYTHONPATH=src:tests python -m support.golden_losses` writes tests/contract/golden_losses.json again: after a change of
that code, when the new losses are what the change should give.
"""

from __future__ import annotations

import json
from typing import Any

import torch

from support import REPOSITORY
from support.families import task_of
from support.twins import RULES, begin, make_run, silent, split_of
from tiebreak import catalog
from tiebreak.models.design import Design
from tiebreak.plan.code_identity import Sources
from tiebreak.train.loop import Loop

TABLE = REPOSITORY / "tests" / "contract" / "golden_losses.json"
COMMAND = "PYTHONPATH=src:tests python -m support.golden_losses"
EXAMPLES, EPOCHS = 28, 2  # four steps of eight, the last of them padded
CASES: dict[str, tuple[str, dict[str, Any]]] = {  # name: design and rule
    **{name: (name, {"kind": "adam", "lr": 0.003}) for name in catalog.DESIGNS},
    **{f"rule {name}": ("mlp", rule) for name, rule in RULES.items()},
    "schedule cosine": ("mlp", {"kind": "sgd", "lr": 0.05, "schedule": "cosine"}),
    "label smoothing": ("mlp", {"kind": "sgd", "lr": 0.05, "label_smoothing": 0.1}),
}


def source_of(design: Design, sources: Sources) -> str:
    """The digest that a run of the design carries."""
    return sources.run_source(sources.definition(design.build), sources.definition(type(task_of(design))))


def entry(case: str, sources: Sources) -> dict[str, Any]:
    """The digest, the losses of training and the metrics afterwards, in float64."""
    name, rule = CASES[case]
    design = catalog.DESIGNS[name]
    begun = begin(design, [make_run(design, seed=3, epochs=EPOCHS, **rule)])
    (engine,) = begun.looped()
    assert isinstance(engine, Loop)
    split = split_of(design, EXAMPLES, torch.float64)
    losses = [engine.train_epoch(split, silent)[0] for _ in range(EPOCHS)]
    ((metrics, _),) = engine.evaluate(split)
    return {"source": source_of(design, sources), "losses": losses, "metrics": metrics}


def main() -> None:
    """Write the table again."""
    torch.set_num_threads(1)
    sources = Sources()
    table = {case: entry(case, sources) for case in CASES}
    TABLE.write_text(json.dumps(table, indent=1) + "\n", "utf-8")
    print(f"{TABLE}: {len(table)} entries")


if __name__ == "__main__":
    main()
