"""Does the attention decoder train faster than the LSTM decoder? Both alone, in turns, on the same batches of noise.

    python benchmarks/decoders.py [--device cuda] [--precision tf32] [--frames 2754] [--batch 64] [--rounds 12] [--save]

Decides the claim attention-decoder-faster of reports R0 and R1. One run of each design, trained as `tiebreak` trains a
run alone (torch's own LSTM kernel, no fusing): whole training steps with AdamW, at the published sizes by default. The
ratio is that of neighbouring rounds; its 95 % interval is Student's t over the logarithms of the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import torch
from scipy import stats as scipy_stats
from torch import nn

import timing
from tiebreak import catalog
from tiebreak.models.design import Clips
from tiebreak.plan.resolve import complete
from tiebreak.study.registry import DESIGNS
from tiebreak.tasks.interface import Split

ARMS = ("speech-attention", "speech-lstm")
LENGTH = 98


def step(network: nn.Module, optimiser: torch.optim.Optimizer, batch: Split, device: str) -> None:
    weights = torch.full((len(batch["inputs"]),), 1 / len(batch["inputs"]), device=device)
    loss = catalog.TASKS["transcribe"].with_options({"count_padding": True}).loss(network, batch, weights, {})
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()


def seconds(network: nn.Module, optimiser: torch.optim.Optimizer, batch: Split, device: str, steps: int) -> float:
    start = time.perf_counter()
    for _ in range(steps):
        step(network, optimiser, batch, device)
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--precision", default="float32", choices=("float32", "tf32"), help="on a GPU")
    parser.add_argument("--frames", type=int, default=2754)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=1, help="in a round")
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1 if given.device == "cpu" else torch.get_num_threads())
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = given.precision == "tf32"
    generator = torch.Generator().manual_seed(0)
    shape = Clips(mels=80, frames=given.frames, symbols=35, length=LENGTH)
    batch = {
        "features": torch.randn(given.batch, given.frames, 80, generator=generator).to(given.device),
        "inputs": torch.randint(0, 35, (given.batch, LENGTH), generator=generator).to(given.device),
        "targets": torch.randint(0, 35, (given.batch, LENGTH), generator=generator).to(given.device),
    }
    made = []
    for name in ARMS:
        network = catalog.DESIGNS[name].network(shape, complete(DESIGNS[name].options, {}), 0).to(given.device).train()
        made.append((network, torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.01)))
    times: list[list[float]] = [[], []]
    for number in range(given.rounds + 1):
        for which in (0, 1) if number % 2 else (1, 0):
            spent = seconds(*made[which], batch, given.device, given.steps)
            if number:  # the first round warms up
                times[which].append(spent)
    logs = np.log(times[1]) - np.log(times[0])
    half = float(scipy_stats.t.ppf(0.975, len(logs) - 1)) * logs.std(ddof=1) / len(logs) ** 0.5
    ratio, low, high = (float(np.exp(value)) for value in (logs.mean(), logs.mean() - half, logs.mean() + half))
    holds = "holds" if low > 1 else "fails" if high < 1 else "undecided"
    ours, peer = (1000 * statistics.median(each) for each in times)
    print(
        f"attention {ours:.1f} ms a step, lstm {peer:.1f} ms; lstm / attention {ratio:.3f} "
        f"(95 % {low:.3f} to {high:.3f}, {len(logs)} rounds): attention-decoder-faster {holds} here"
    )
    if given.save:
        row = {
            "benchmark": "decoders", "case": f"frames {given.frames}, batch {given.batch}, {given.precision}", "n": 1,
            "ours_ms": round(ours, 2), "peer": "speech-lstm", "peer_ms": round(peer, 2), "ratio": round(ratio, 4),
            "low": round(low, 4), "high": round(high, 4), "rounds": len(logs), "verdict": holds,
        }  # fmt: skip
        name = torch.cuda.get_device_name() if given.device == "cuda" else ""
        print(timing.save(f"decoders-{given.device}-{given.precision}", [row], device=name))


if __name__ == "__main__":
    main()
