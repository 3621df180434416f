"""Baselines without audio for the error rates of the study `speech-decoder --quick`.

    python benchmarks/speech_without_sound.py

| baseline | what it does                                                                                            |
|----------|---------------------------------------------------------------------------------------------------------|
| constant | always answers the training transcript with the least character error on the whole training split       |
| no audio | the study's attention decoder, trained as in the study, on clips in which every frame is zero and whose   |
|          | lengths are hidden too: it can only learn the language                                                  |
"""

from __future__ import annotations

import numpy as np
import torch
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from tiebreak import catalog
from tiebreak.plan.planner import make_plan
from tiebreak.streams import stream
from tiebreak.study.schema import Study
from tiebreak.tasks import similarity
from tiebreak.tasks.interface import Split
from tiebreak.train.loop import Loop
from tiebreak.train.step import initial_state


def constant(train: list[str], test: list[str]) -> tuple[str, float]:
    """The best constant transcript, and its character error rate on the test split."""
    known = sorted(set(train))
    edits = cdist(known, train, scorer=Levenshtein.distance).sum(axis=1)
    best = known[int(np.argmin(edits))]
    return best, similarity.cer(test, [best] * len(test))


def silent(split: Split) -> Split:
    return {
        **split, "features": torch.zeros_like(split["features"]), "frames": torch.full_like(split["frames"], 8)
    }  # fmt: skip


def main() -> None:
    torch.set_num_threads(1)
    study = Study.load("speech-decoder").quickened()
    plan = make_plan(study, None)
    run = plan.runs[plan.arm("attention").run({}, 0)]
    task = catalog.TASKS[run.task].with_options(run.options)
    data = task.load(run.data, None)
    best, rate = constant(list(data.texts["train"]), list(data.texts["test"]))
    print(f"constant  {best!r}: cer {rate:.3f}")
    network = catalog.DESIGNS[run.design].network(task.shape(data), run.build, stream(run.seed, "init"))
    trainer = Loop(task, network, run, initial_state(network, run))
    train, test = (silent(task.split(data, name, run.options, {})) for name in ("train", "test"))
    for epoch in range(run.epochs):
        (loss,) = trainer.train_epoch(train, lambda share, steps: None)
        print(f"no audio  epoch {epoch + 1}: training loss {loss:.3f}")
    found = trainer.evaluate(test)[0][0]
    print("no audio ", ", ".join(f"{name} {value:.3f}" for name, value in found.items()))


if __name__ == "__main__":
    main()
