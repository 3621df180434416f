"""What a GPU would replay is the loop: for users' networks, with the forms that layers have there.

The graph's products and updates are rewritten as for a GPU; only the CUDA graph is a stand-in. In float64, so that
nothing but a wrong order of updates or a wrong form can show.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from support.captured_here import capture_here, program_for_a_gpu
from support.twins import apart, silent
from support.zoo import ZOO
from support.zoo_runs import BATCH, FUSED, begin, examples, runs_of
from tiebreak.layers import mapped_norm, recurrent_scan
from tiebreak.layers.product_conv import use_products
from tiebreak.layers.rnn import use_plain_cells
from tiebreak.layers.stacked_conv import stack_convolutions
from tiebreak.train.fused import capture, engine, rewrite

ORDER = ("MergedLowRank", "ReadsItsMemory", "LastWeights")  # factors that change, a parameter that is read later

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:There is a performance drop"),  # of a slow rule of vmap
    pytest.mark.filterwarnings("ignore:LSTM with projections"),  # of torch's own kernel
]


@pytest.fixture(name="gpu_forms")
def _gpu_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine as on a GPU."""

    def use_forms(network: nn.Module, on: bool) -> None:
        use_plain_cells(network, on)
        use_products(network, BATCH)
        stack_convolutions(network)

    capture_here(monkeypatch)
    monkeypatch.setattr(engine, "make_program", program_for_a_gpu)
    monkeypatch.setattr(engine, "use_plain_cells", use_forms)
    monkeypatch.setattr(recurrent_scan, "FORCED", "kernel")
    monkeypatch.setattr(mapped_norm, "_takes", lambda *tensors: mapped_norm._form[-1] and mapped_norm._mapped())
    monkeypatch.setattr(rewrite, "_ours", lambda product: True)  # in float64 too


@pytest.fixture(scope="module", name="split")
def _split() -> dict[str, Tensor]:
    return examples()


@pytest.mark.usefixtures("gpu_forms")
@pytest.mark.parametrize("name", FUSED)
def test_a_captured_program_is_the_loop(name: str, split: dict[str, Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    taken_out: list[int] = []

    def counted(graph: torch.fx.GraphModule, *, compiled: bool = False) -> list[rewrite.Descent]:
        found = rewrite.rewrite(graph, compiled=compiled)
        taken_out.append(len(found))
        return found

    monkeypatch.setattr(capture, "rewrite", counted)
    animal = ZOO[name]
    looped, captured = (begin(animal, runs_of(animal, 2)) for _ in range(2))
    trainer = captured.fused()
    losses = trainer.train_epoch(split, silent)
    assert losses == pytest.approx([each.train_epoch(split, silent)[0] for each in looped.looped()], rel=1e-10)
    for mine, wanted in zip(captured.states, looped.states, strict=True):
        assert apart({**mine.params, **mine.buffers}, {**wanted.params, **wanted.buffers}) < 1e-10
    assert taken_out[0] > 0 or name not in ORDER  # the updates that can be are


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*ORDER, "SlopeInForward"])
def test_a_program_on_a_gpu_is_the_loop_there(name: str, split: dict[str, Tensor]) -> None:
    animal = ZOO[name]
    looped, captured = (begin(animal, runs_of(animal, 2), torch.float32, "cuda") for _ in range(2))
    there = {"images": split["images"].float().cuda(), "labels": split["labels"].cuda()}
    losses = captured.fused().train_epoch(there, silent)
    assert losses == pytest.approx([each.train_epoch(there, silent)[0] for each in looped.looped()], rel=1e-4)
    for mine, wanted in zip(captured.states, looped.states, strict=True):
        assert apart({**mine.params, **mine.buffers}, {**wanted.params, **wanted.buffers}) < 1e-3
