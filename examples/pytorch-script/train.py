"""A training script as many people have one: it knows nothing of Tiebreak.

It takes its settings from the command line, trains, and leaves its scores in a folder. It writes a checkpoint after
every epoch and continues from it, so that an interrupted run loses one epoch at most.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from torch import nn

EPOCHS = 4


def data(split: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Two noisy spirals: the same points for every run."""
    generator = torch.Generator().manual_seed({"train": 1, "val": 2, "test": 3}[split])
    labels = torch.arange(400) % 2
    turn = torch.rand(400, generator=generator) * 5
    points = torch.stack([turn.cos(), turn.sin()], 1) * (turn * (1 - 2 * labels))[:, None] / 5
    return points + 0.05 * torch.randn(400, 2, generator=generator), labels


def correct(network: nn.Module, split: str) -> torch.Tensor:
    """For each example of the split, whether the network is right."""
    points, labels = data(split)
    network.eval()
    with torch.no_grad():
        return network(points).argmax(1) == labels


def main() -> None:
    """Train one network."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--dropout", type=float, required=True)
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    network = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Dropout(options.dropout), nn.Linear(32, 2))
    optimiser = torch.optim.Adam(network.parameters(), lr=options.lr)
    points, labels = data("train")
    checkpoint, first = options.out / "checkpoint.pt", 1
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        network.load_state_dict(state["network"])
        optimiser.load_state_dict(state["optimiser"])
        first = state["epoch"] + 1
    for epoch in range(first, EPOCHS + 1):
        network.train()
        order = torch.randperm(len(points), generator=torch.Generator().manual_seed(1000 * options.seed + epoch))
        for batch in order.split(20):
            loss = nn.functional.cross_entropy(network(points[batch]), labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        line = {
            "epoch": epoch,
            "train_loss": loss.item(),
            "val_accuracy": correct(network, "val").float().mean().item(),
        }
        with (options.out / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
        state = {"network": network.state_dict(), "optimiser": optimiser.state_dict(), "epoch": epoch}
        torch.save(state, checkpoint.with_suffix(".new"))
        checkpoint.with_suffix(".new").replace(checkpoint)
        print(line)
    right = correct(network, "test").double().numpy()
    np.savez(options.out / "outcomes.npz", accuracy=right)
    val = correct(network, "val").double().mean().item()
    scores = {"val": {"accuracy": val}, "test": {"accuracy": right.mean()}}
    (options.out / "scores.json").write_text(json.dumps(scores))


if __name__ == "__main__":
    main()
