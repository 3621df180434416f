"""A user's network trains as plain torch would train it, whatever runs beside it, or the plan refuses it by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from support import zoo_layers, zoo_memory, zoo_random, zoo_structure
from support.twins import Begun, apart, equal, make_run, silent
from support.zoo import SHAPE, ZOO, Animal
from tiebreak import catalog
from tiebreak.data.batches import epoch_batches
from tiebreak.errors import TiebreakError
from tiebreak.layers.global_generators import seeded
from tiebreak.models.fusibility import fusion_obstacle
from tiebreak.plan.runs import Run
from tiebreak.streams import stream
from tiebreak.train import checkpoint
from tiebreak.train.evaluate import evaluate
from tiebreak.train.step import initial_state

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:There is a performance drop"),  # of a slow rule of vmap: slow is not wrong
]

EXAMPLES, BATCH, RATE = 80, 8, 0.05  # ten steps an epoch, two epochs
NETWORKS = (zoo_layers, zoo_memory, zoo_random, zoo_structure)  # importing them fills the zoo
TASK = catalog.TASKS["classify"]
TRAINED = [name for name, animal in ZOO.items() if not animal.refused]
EVALUATED = ("EmaRebound", "BatchNormCumulative", "FunctionalDropout", "EncoderLayer")  # a trace each, so only some
FUSED = [name for name in TRAINED if ZOO[name].fusible]


@pytest.fixture(scope="module")
def split() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(3)
    images = torch.rand(EXAMPLES, 1, 6, 6, generator=generator, dtype=torch.float64) * 3 - 0.5
    return {"images": images, "labels": torch.randint(3, (EXAMPLES,), generator=generator)}


def runs_of(animal: Animal, count: int) -> list[Run]:
    return [make_run(animal.design(), seed=seed, lr=RATE, batch=BATCH) for seed in range(count)]


def begin(animal: Animal, runs: list[Run]) -> Begun:
    design = animal.design()
    networks = [design.network(SHAPE, {}, stream(run.seed, "init")).double() for run in runs]
    return Begun(design, runs, networks, [initial_state(*each) for each in zip(networks, runs, strict=True)])


@pytest.mark.parametrize("name", [name for name, animal in ZOO.items() if animal.refused])
def test_what_cannot_be_repeated_is_refused_with_a_name(name: str) -> None:
    with pytest.raises(TiebreakError, match=re.escape(ZOO[name].refused)) as refusal:
        ZOO[name].design().network(SHAPE, {}, 0)
    assert f"design '{name}'" in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", TRAINED)
def test_a_loop_is_the_same_alone_in_company_and_resumed(name: str, split: dict[str, Tensor], tmp_path: Path) -> None:
    animal = ZOO[name]
    (run, *others) = runs_of(animal, 4)
    alone, company, resumed = begin(animal, [run]), begin(animal, [*others, run]), begin(animal, [run])
    (first,) = alone.looped()
    first.train_epoch(split, silent)
    (tmp_path / "checkpoints").mkdir()
    record = checkpoint.save(tmp_path, run, alone.states[0])
    evaluate(TASK, alone.networks[0], split)
    first.train_epoch(split, silent)
    for epoch in range(2):
        for engine in company.looped():
            engine.train_epoch(split, silent)
            torch.rand(3 + epoch)  # the global generator is elsewhere for everybody
    assert equal(alone.states[0], company.states[-1])
    checkpoint.restore(tmp_path, record, resumed.states[0])
    resumed.looped()[0].train_epoch(split, silent)
    assert equal(alone.states[0], resumed.states[0])


@pytest.mark.parametrize("name", [name for name in TRAINED if not ZOO[name].draws])
def test_a_loop_is_what_plain_torch_computes(name: str, split: dict[str, Tensor]) -> None:
    animal = ZOO[name]
    (run,) = runs_of(animal, 1)
    begun = begin(animal, [run])
    (engine,) = begun.looped()
    with seeded(stream(run.seed, "init")):
        plain = animal.build(SHAPE)
        plain.eval()(torch.zeros(2, 1, 6, 6))  # lazy layers
    plain.double().train()
    optimiser = torch.optim.SGD(plain.parameters(), lr=RATE)
    for epoch in range(2):
        engine.train_epoch(split, silent)
        for indices in epoch_batches(run.seed, epoch, EXAMPLES, BATCH).indices:
            optimiser.zero_grad()
            F.cross_entropy(plain(split["images"][indices]), split["labels"][indices]).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    found = {**begun.states[0].params, **begun.states[0].buffers}
    wanted = {**dict(plain.named_parameters()), **dict(plain.named_buffers())}
    assert wanted.keys() <= found.keys()
    assert apart({key: found[key] for key in wanted}, {key: each.detach() for key, each in wanted.items()}) < 1e-10
    with torch.no_grad():
        ours, theirs = (each.eval()(split["images"]) for each in (begun.networks[0], plain))
    assert torch.allclose(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", FUSED)
def test_fused_is_the_loop_whatever_the_company_and_after_a_resume(
    name: str, split: dict[str, Tensor], tmp_path: Path
) -> None:
    animal = ZOO[name]
    runs = runs_of(animal, 4)
    assert fusion_obstacle(animal.design().network(SHAPE, {}, 0), SHAPE) == ""
    looped, fused, few = begin(animal, runs[:2]), begin(animal, runs), begin(animal, runs[:2])
    engine = fused.fused()
    engine.train_epoch(split, silent)
    (tmp_path / "checkpoints").mkdir()
    records = [checkpoint.save(tmp_path, run, state) for run, state in zip(runs[:2], fused.states, strict=False)]
    engine.train_epoch(split, silent)
    for record, state in zip(records, few.states, strict=True):
        checkpoint.restore(tmp_path, record, state)
    few.fused().train_epoch(split, silent)
    for one, loop in enumerate(looped.looped()):
        loop.train_epoch(split, silent)
        loop.train_epoch(split, silent)
        assert equal(few.states[one], fused.states[one])
        assert apart(fused.states[one].tensors(), looped.states[one].tensors()) < 1e-10
    evaluations = engine.evaluate(split)[:2] if name in EVALUATED else []
    for evaluation, loop in zip(evaluations, looped.looped(), strict=False):
        assert evaluation[0]["loss"] == pytest.approx(loop.evaluate(split)[0][0]["loss"], rel=1e-6)


@pytest.mark.parametrize("name", [name for name in TRAINED if not ZOO[name].fusible])
def test_what_is_trained_one_by_one_has_a_reason(name: str) -> None:
    assert fusion_obstacle(ZOO[name].design().network(SHAPE, {}, 0), SHAPE) != ""


def test_the_zoo_is_large() -> None:
    assert len(ZOO) >= 60
    assert len(TRAINED) >= 30
