"""A user's network trains as plain torch would train it, whatever runs beside it, or the plan refuses it by name."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from support.families import family_of, options_of
from support.twins import Begun, apart, equal, make_run, silent
from support.zoo import SHAPE, ZOO, Animal, Net
from support.zoo_runs import BATCH, EXAMPLES, FUSED, RATE, TRAINED, begin, examples, runs_of
from tiebreak import catalog
from tiebreak.data.batches import epoch_batches
from tiebreak.errors import TiebreakError
from tiebreak.layers.dropout import keyed
from tiebreak.layers.global_generators import seeded
from tiebreak.models.design import Images
from tiebreak.models.fusibility import fusion_obstacle
from tiebreak.streams import stream
from tiebreak.train import checkpoint
from tiebreak.train.evaluate import evaluate
from tiebreak.train.fused.engine import Fused
from tiebreak.train.loop import Loop
from tiebreak.train.step import initial_state

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:There is a performance drop"),  # of a slow rule of vmap: slow is not wrong
    pytest.mark.filterwarnings("ignore:LSTM with projections"),  # of torch's own kernel
]

TASK = catalog.TASKS["classify"]
TYPES = {torch.float64: torch.float32}
EVALUATED = ("EmaRebound", "BatchNormCumulative", "FunctionalDropout", "EncoderLayer")  # a trace each, so only some


@pytest.fixture(scope="module")
def split() -> dict[str, Tensor]:
    return examples()


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
    runs = runs_of(animal, 3)
    assert fusion_obstacle(partial(animal.design().network, SHAPE, {}, 0), SHAPE) == ""
    looped, fused, few = begin(animal, runs[:2]), begin(animal, runs), begin(animal, runs[:2])
    engine = fused.fused()
    engine.train_epoch(split, silent)
    (tmp_path / "checkpoints").mkdir()
    records = [checkpoint.save(tmp_path, run, state) for run, state in zip(runs[:2], fused.states, strict=False)]
    engine.train_epoch(split, silent)
    assert engine.finite() == [True, True, True]
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


ROUNDED = (
    *(
        "MultiHead",
        "DotProductAttention",
        "QueriesWithoutKeys",
        "MultiHeadMasks",
        "VisionTransformer",
        "GroupedQueries",
    ),
    *("TwoInputs", "Norms", "PerInstance", "MatrixByVector", "Convolutions", "SpectralNorm", "LstmCell", "Quantiles"),
)


@pytest.mark.parametrize("name", ROUNDED)
def test_in_bf16_fused_is_as_near_as_the_loop(name: str) -> None:
    """Under vmap autocast acts below the gradient: without forms of our own two types meet there."""
    animal, split = ZOO[name], {key: each.to(TYPES.get(each.dtype, each.dtype)) for key, each in examples().items()}
    exact, looped, fused = (begin(animal, runs_of(animal, 2), torch.float32) for _ in range(3))
    for each, precision in ((exact, None), (looped, "bfloat16")):
        run = each.runs[0]
        Loop(TASK, each.networks[0], run, each.states[0], precision).train_epoch(split, silent)  # type: ignore[arg-type]
    Fused(TASK, fused.networks[0], fused.runs, fused.states, precision="bfloat16").train_epoch(split, silent)
    wanted = exact.states[0].params
    assert 0 < apart(looped.states[0].params, wanted) < 0.1
    assert 0 < apart(fused.states[0].params, wanted) < 0.1


@pytest.mark.parametrize("name", [name for name in TRAINED if not ZOO[name].fusible])
def test_what_is_trained_one_by_one_has_a_reason(name: str) -> None:
    assert fusion_obstacle(partial(ZOO[name].design().network, SHAPE, {}, 0), SHAPE) != ""


def test_a_draw_that_no_check_foresaw_fails_the_run(split: dict[str, Tensor]) -> None:
    """It happens only for large inputs, which the checks do not try."""

    class DrawsLater(Net):
        def middle(self, x: Any) -> Any:
            return x + torch.randn_like(x) if self.training and float(x.abs().max()) > 1e3 else F.relu(x)

    animal = Animal(DrawsLater)
    (engine,) = begin(animal, runs_of(animal, 1)).looped()
    engine.train_epoch(split, silent)
    with pytest.raises(TiebreakError, match=r"DrawsLater.*generator of torch"):
        engine.train_epoch({**split, "images": 1e6 * split["images"]}, silent)


@pytest.mark.parametrize("name", catalog.DESIGNS)
def test_designs_of_the_catalog_call_each_layer_that_draws_once(name: str) -> None:
    """So that their numbers are those of a key for each layer."""
    design = catalog.DESIGNS[name]
    network = design.network(family_of(design).small, options_of(design), 0).train()
    network(*family_of(design).small.inputs(1 if design.family == "language" else 2))
    assert [layer.calls for layer in keyed(network).values()] == [1] * len(keyed(network))


def test_the_zoo_is_large() -> None:
    assert len(ZOO) >= 60
    assert len(TRAINED) >= 30


class OneDropout(nn.Module):
    """A perceptron with one hidden layer and one dropout layer, called before and after the nonlinearity."""

    def __init__(self, shape: Images) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(36, 32), nn.Linear(32, shape.classes)
        self.before = self.after = nn.Dropout(0.5)

    def forward(self, images: Tensor) -> Any:
        return self.out(self.after(F.relu(self.before(self.hidden(images.flatten(1))))))


class SeparateDropouts(OneDropout):
    """The same with two dropout layers: torch trains both alike."""

    def __init__(self, shape: Images) -> None:
        super().__init__(shape)
        self.after = nn.Dropout(0.5)


def test_one_dropout_layer_in_two_places_is_as_good_as_two() -> None:
    """Torch trains both alike. With the same mask at each call they were 17 standard errors apart: a false verdict."""
    generator = torch.Generator().manual_seed(5)
    images = torch.randn(1024, 1, 6, 6, generator=generator)
    labels = (images.flatten(1) @ torch.randn(36, 3, generator=generator)).argmax(dim=1)
    train = {"images": images[:512], "labels": labels[:512]}
    val = {"images": images[512:], "labels": labels[512:]}
    losses = []
    for build in (OneDropout, SeparateDropouts):
        animal = Animal(build)
        runs = [make_run(animal.design(), seed=seed, lr=0.2, batch=32, epochs=5) for seed in range(16)]
        networks = [animal.design().network(SHAPE, {}, stream(run.seed, "init")) for run in runs]
        states = [initial_state(*each) for each in zip(networks, runs, strict=True)]
        engine = Begun(animal.design(), runs, networks, states).fused()
        for _ in range(5):
            engine.train_epoch(train, silent)
        losses.append([metrics["loss"] for metrics, _ in engine.evaluate(val)])
    differences = np.subtract(losses[0], losses[1])
    assert abs(differences.mean()) < 3 * differences.std(ddof=1) / 4
