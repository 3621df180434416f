from __future__ import annotations

import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from support.small_study import cohort_job, one_run, one_thread, write_data
from tiebreak.drive.messages import RunEnded
from tiebreak.drive.worker import train
from tiebreak.train.precision import callable_in, in_dtype, of_run
from tiebreak.train.run_group import make_group


def test_only_bfloat16_rounds_inside_the_network_and_logits_are_float32() -> None:
    network, x = nn.Linear(64, 8), torch.rand(4, 64, generator=torch.Generator().manual_seed(0))
    assert callable_in(network, None) is network
    rounded = callable_in(network, "bfloat16")(x)
    assert rounded.dtype == torch.float32
    assert not torch.equal(rounded, network(x))
    assert torch.allclose(rounded, network(x), atol=0.02)


class Steps(nn.Module):
    width = 3

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(8), nn.Linear(8, 8)

    def step(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        product = self.linear(x)
        return product, {"normed": self.norm(product), "weights": product.softmax(dim=-1), "count": torch.arange(2)}


def test_a_networks_methods_are_in_bfloat16_too_with_norms_and_softmax_in_float32() -> None:
    network = Steps()
    call, x = callable_in(network, "bfloat16"), torch.rand(4, 8, generator=torch.Generator().manual_seed(0))
    product, found = call.step(x)  # type: ignore[attr-defined]
    assert torch.equal(product, product.bfloat16().float())
    for name, wanted in (("normed", network.norm(product)), ("weights", product.softmax(dim=-1))):
        assert torch.equal(found[name], wanted)  # neither was rounded on the way
    assert found["count"].dtype == torch.int64
    assert call.width == 3  # type: ignore[attr-defined]


class Rules(nn.Module):
    """Types inside a network."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm, self.both = nn.Linear(8, 8), nn.RMSNorm(8), nn.Bilinear(8, 8, 8)
        self.seen: dict[str, torch.dtype] = {}

    def forward(self, x: Tensor) -> Tensor:
        h = self.linear(x)
        found = {
            "product": h, "relu": h.relu(), "by vector": torch.mv(h, x[0]),
            "exp": h.exp(), "power": h**2, "sum": h.sum(dim=-1), "norm": h.norm(), "rms": self.norm(h),
            "both": self.both(h, h), "named": torch.softmax(input=h, dim=-1),
            "chain": torch.linalg.multi_dot([h, x.mT, x]), "inner": torch.inner(h, x), "dot": h[0].dot(x[0]),
        }  # fmt: skip
        assert torch.tensor([[300, 1]]).mv(torch.tensor([1, 1])).item() == 301
        assert x.double().mv(x[0].double()).dtype == torch.float64
        place = torch.zeros_like(h)
        assert torch.exp(h.detach(), out=place) is place
        assert place.all()
        self.seen = {name: each.dtype for name, each in found.items()}
        return torch.add(found["rms"], found["both"])


def test_a_network_computes_in_the_types_of_autocast_on_a_gpu() -> None:
    network = Rules()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert callable_in(network, "bfloat16")(torch.rand(4, 8)).dtype == torch.float32
    rounded = {name for name, dtype in network.seen.items() if dtype == torch.bfloat16}
    assert rounded == {"product", "relu", "by vector", "chain"}
    assert set(network.seen.values()) == {torch.bfloat16, torch.float32}


def test_the_option_applies_where_the_study_states_nothing() -> None:
    assert of_run(None, "bf16") == of_run("bfloat16", "bf16") == of_run("bfloat16", "float32") == "bfloat16"
    assert of_run(None, "float32") is of_run(None, "tf32") is None


def test_a_job_in_bf16_says_so_in_its_records(tmp_path: Path) -> None:
    with one_thread():
        data = write_data(tmp_path / "data")
        job = cohort_job([one_run(data, epochs=1, batch=32)], tmp_path / "out", data, precision="bf16")
        assert make_group(job).precision == "bfloat16"
        ended = list(train(job, lambda message: None))[-1]
    assert isinstance(ended, RunEnded)
    assert ended.record.provenance["device"] == "cpu, bf16"
    assert "bfloat16" in ended.record.provenance["precision"]


def test_whole_numbers_stay_what_they_are() -> None:
    assert in_dtype(torch.arange(3), "float64").dtype == torch.int64
    assert in_dtype(torch.zeros(3), "float64").dtype == torch.float64
    assert in_dtype(torch.zeros(3), "bfloat16").dtype == torch.float32


def test_a_job_in_float64_trains_and_evaluates_in_it(tmp_path: Path) -> None:
    with one_thread():
        data = write_data(tmp_path / "data")
        run = one_run(data, epochs=1, batch=32, precision="float64")
        assert run.precision == "float64"
        job = cohort_job([run], tmp_path / "out", data)
        group = make_group(job)
        assert {values.dtype for values in group.states[0].params.values()} == {torch.float64}
        assert group.split("val", {})["images"].dtype == torch.float64
        assert isinstance(list(train(job, lambda message: None))[-1], RunEnded)
