"""Our loop against a plain PyTorch script of the same translator: same data, same batches, one run on one CPU core.

    python benchmarks/translation.py [--rounds 7] [--save]

The script is what one would write by hand: nn.LSTM on packed sequences, nn.Dropout, torch.optim.Adam. Both are first
checked to train the same network to the same parameters in float64 without dropout; otherwise no ratio is printed.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import timing
from tiebreak import catalog
from tiebreak.data.batches import epoch_batches
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Run
from tiebreak.streams import stream
from tiebreak.study.schema import Study
from tiebreak.tasks.interface import Split
from tiebreak.train.loop import Loop
from tiebreak.train.step import State, initial_state

STEPS = 20


class Plain(nn.Module):
    """The translator with bilinear attention, or without, by torch's own layers; parameters in our order."""

    def __init__(self, symbols: tuple[int, int], width: int, dropout: float, *, attention: bool) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(symbols[1]))
        self.source, self.target = nn.Embedding(symbols[0], width), nn.Embedding(symbols[1], width)
        self.encoder = nn.LSTM(width, width // 2, bidirectional=True, batch_first=True)
        self.decoder = nn.LSTM(width, width, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.score = nn.Linear(width, width, bias=False) if attention else None
        self.output = nn.Linear(2 * width, width) if attention else None

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits."""
        real = source != 0
        packed = pack_padded_sequence(
            self.dropout(self.source(source)), real.sum(dim=1), batch_first=True, enforce_sorted=False
        )
        outputs, (hidden, cell) = self.encoder(packed)
        memory = self.dropout(pad_packed_sequence(outputs, batch_first=True, total_length=source.shape[1])[0])
        first = tuple(torch.cat([each[0], each[1]], dim=-1)[None] for each in (hidden, cell))
        out, _ = self.decoder(self.dropout(self.target(target)), first)
        if self.score is not None and self.output is not None:
            weights = (self.score(out) @ memory.mT).masked_fill(~real[:, None], -1e9).softmax(dim=-1)
            out = torch.tanh(self.output(torch.cat([out, weights @ memory], dim=-1)))
        return F.linear(self.dropout(out), self.target.weight, self.bias)


def script_epoch(network: nn.Module, optimiser: torch.optim.Optimizer, split: Split, order: Tensor) -> None:
    network.train()
    for chosen in order:
        optimiser.zero_grad()
        logits = network(split["source"][chosen], split["inputs"][chosen])
        loss = F.cross_entropy(logits.flatten(0, 1), split["targets"][chosen].flatten(), ignore_index=0)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()


def pair(run: Run, split: Split, dropout: float, dtype: torch.dtype) -> tuple[nn.Module, Plain]:
    """Our network and the script's with the same parameters."""
    task = catalog.TASKS["translate"]
    shape = task.shape(task.load(run.data, None))
    ours = catalog.DESIGNS[run.design].network(shape, run.build, stream(run.seed, "init")).to(dtype)
    symbols = (shape.sources, shape.targets)  # type: ignore[union-attr]
    attention = run.design == "translator-attention"
    peer = Plain(symbols, int(run.build["width"]), dropout, attention=attention).to(dtype)
    state = {name.removeprefix("attention."): values for name, values in ours.state_dict().items()}
    peer.load_state_dict({name: state[name] for name in peer.state_dict()})
    return ours, peer


def our_epoch(network: nn.Module, run: Run, state: State, split: Split) -> None:
    state.epoch = 0
    Loop(catalog.TASKS["translate"], network, run, state).train_epoch(split, lambda share, steps: None)


def order_of(run: Run, split: Split) -> Tensor:
    return torch.from_numpy(epoch_batches(run.seed, 0, len(split["source"]), run.batch).indices)


def check(run: Run, split: Split) -> None:
    still = run.model_copy(update={"hypers": {**run.hypers, "dropout": 0.0}})
    ours, peer = pair(still, split, 0.0, torch.float64)
    task = catalog.TASKS["translate"]
    Loop(task, ours, still, initial_state(ours, still)).train_epoch(split, lambda share, steps: None)
    script_epoch(
        peer, torch.optim.Adam(peer.parameters(), lr=cast(float, run.hypers["lr"])), split, order_of(run, split)
    )
    theirs = dict(peer.named_parameters())
    for name, values in ours.named_parameters():
        other = theirs[name.removeprefix("attention.")]
        distance = float((values - other).detach().norm() / (other.detach().norm() + 1e-12))
        if distance > 1e-8:
            raise SystemExit(f"{run.design}: {name} is {distance:g} apart: no ratio is worth printing")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    study = Study.load("translation-attention").quickened()
    plan = make_plan(study, None)
    task = catalog.TASKS["translate"]
    rows: list[dict[str, object]] = []
    for arm in ("plain", "attention"):
        run = plan.runs[next(iter(plan.arm(arm).runs.values()))]
        run = run.model_copy(update={"build": {"width": 128}})
        whole = task.split(task.load(run.data, None), "train", run.options, {})
        split = {name: values[: STEPS * run.batch] for name, values in whole.items()}
        check(run, split)
        ours, peer = pair(run, split, 0.3, torch.float32)
        state, order = initial_state(ours, run), order_of(run, split)
        optimiser = torch.optim.Adam(peer.parameters(), lr=cast(float, run.hypers["lr"]))

        ours_now = partial(our_epoch, ours, run, state, split)
        script_now = partial(script_epoch, peer, optimiser, split, order)
        seconds = timing.interleaved(ours_now, script_now, given.rounds)
        print(
            f"{run.design}: ours {1000 * seconds[0] / STEPS:.1f} ms a step, script {1000 * seconds[1] / STEPS:.1f} ms; "
            f"script / ours {1 / seconds[2]:.3f}"
        )
        rows.append(
            {
                "benchmark": "translation", "case": f"{run.design}, width 128, batch {run.batch}", "n": 1,
                "ours_ms": round(1000 * seconds[0] / STEPS, 2), "peer": "plain PyTorch script",
                "peer_ms": round(1000 * seconds[1] / STEPS, 2), "ratio": round(1 / seconds[2], 3),
            }
        )  # fmt: skip
    if given.save:
        print(timing.save("translation", rows))


if __name__ == "__main__":
    main()
