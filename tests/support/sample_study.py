"""The study behind the reports of these tests: three designs, two of them also tested on moved images."""

from __future__ import annotations

from typing import Any

from tiebreak.study.schema import Study

MOVED = {"disturbed": True}
CLAIMED = {"data": "octmnist", "protocol": "as-reported", "epochs": 15}  # elsewhere: a hint at most
CONTENT: dict[str, Any] = {
    "name": "pooling",
    "question": "At equal parameters, does max pooling classify better than stride 2?",
    "task": "classify",
    "data": "mnist5k",
    "metric": "accuracy",
    "margin": 0.005,
    "seeds": 10,
    "budget": {"epochs": 3, "batch": 8},
    "grid": {"lr": [0.1, 0.01, 0.001]},
    "arms": [
        {"name": "pool", "design": "cnn-pool"},
        {"name": "strided", "design": "cnn-strided"},
        {"name": "unpadded", "design": "cnn-pool-unpadded"},
        {"name": "pool-moved", "design": "cnn-pool", "evaluation": MOVED},
        {"name": "strided-moved", "design": "cnn-strided", "evaluation": MOVED},
    ],
    "comparisons": [
        {"name": "pool vs strided", "a": "pool", "b": "strided", "primary": True},
        {"name": "pool vs unpadded", "a": "pool", "b": "unpadded"},
        {"name": "best learning rate", "kind": "setting", "arm": "pool", "expect": {"lr": 0.01}},
        {
            "name": "robustness",
            "kind": "interaction",
            "a": "pool-moved",
            "b": "strided-moved",
            "c": "pool",
            "d": "strided",
        },
    ],
    "claims": [
        {
            "id": "pool-beats-stride",
            "text": "at equal parameters max pooling beats stride 2",
            "source": ["R0", "R1"],
            "comparison": "pool vs strided",
            **CLAIMED,
        },
        {
            "id": "best-lr-sgd",
            "text": "of 0.1, 0.01, 0.001, SGD trains the pooling CNN best at 0.01",
            "source": ["R0"],
            "comparison": "best learning rate",
            **CLAIMED,
        },
        {
            "id": "pool-invariance",
            "text": "max pooling makes the net more robust",
            "source": ["R0", "R1", "R3"],
            "comparison": "robustness",
            **CLAIMED,
        },
    ],
    "reported": [
        {"source": source, "what": what, "arm": arm, "setting": {"lr": lr}, "metric": metric, "value": value, **CLAIMED}
        for source, what, arm, lr, metric, value in (
            ("R0", "pool, lr=0.01: validation accuracy", "pool", 0.01, "val_accuracy", 0.8754),
            ("R0", "pool, lr=0.01: test accuracy", "pool", 0.01, "accuracy", 0.8318),
            ("R0", "strided, lr=0.01: validation accuracy", "strided", 0.01, "val_accuracy", 0.8557),
            ("R0", "strided, lr=0.01: test accuracy", "strided", 0.01, "accuracy", 0.8110),
            ("R1", "pool, lr=0.1: test accuracy", "pool", 0.1, "accuracy", 0.7013),
            ("R1", "pool, lr=0.1: training loss, running mean", "pool", 0.1, "train_loss_running", 0.6084),
            ("R1", "pool, lr=0.001: test accuracy", "pool", 0.001, "accuracy", 0.7505),
            ("R1", "strided, lr=0.01: training loss, running mean", "strided", 0.01, "train_loss_running", 0.6426),
            ("R2", "unpadded, lr=0.01: validation accuracy", "unpadded", 0.01, "val_accuracy", 0.8600),
            ("ten public re-runs, mean", "strided, lr=0.01: test accuracy", "strided", 0.01, "accuracy", 0.8100),
        )
    ],
}


def sample_study(**changes: Any) -> Study:
    """The study; keyword arguments replace top-level keys."""
    return Study.model_validate({**CONTENT, **changes})
