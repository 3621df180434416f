"""Every design, task, data set and hyper-parameter by name: what study files are checked against, without torch.

`catalog` joins the names to code; tests/study/test_registry.py compares the two. The entries are in
`registry_designs`, `registry_tasks` and `registry_data`; other rooms import this module only.
"""

from __future__ import annotations

from collections.abc import Mapping

from tiebreak.study.registry_data import DATA, OWN_DATA
from tiebreak.study.registry_designs import DESIGNS
from tiebreak.study.registry_tasks import TASKS
from tiebreak.study.registry_types import (
    DataEntry,
    DesignEntry,
    Goal,
    Hyper,
    MetricEntry,
    Option,
    Protocol,
    Scalar,
    TaskEntry,
)

__all__ = [
    "DATA",
    "DESIGNS",
    "HYPERS",
    "OWN_DATA",
    "OWN_TASK",
    "TASKS",
    "DataEntry",
    "DesignEntry",
    "Goal",
    "Hyper",
    "MetricEntry",
    "Option",
    "Protocol",
    "Scalar",
    "TaskEntry",
    "family_of",
    "is_path",
    "metric_label",
]

OWN_TASK = "own"  # the user's own task, and the family of its designs

HYPERS: Mapping[str, Hyper] = {
    "lr": Hyper(default=0.01, low=0.0, high=1e9, line="learning rate"),
    "momentum": Hyper(
        default=0.0, low=0.0, high=1.0, line="momentum of sgd, sgd-nesterov (there 0.9 by default) and rmsprop"
    ),
    "weight_decay": Hyper(
        default=0.0, low=0.0, high=1.0, line="L2 penalty; decoupled from the gradient in adamw and lion"
    ),
    "beta1": Hyper(default=0.9, low=0.0, high=1.0, line="decay of the first moment in adam, adamw, nadam and lion"),
    "beta2": Hyper(
        default=0.999,
        low=0.0,
        high=1.0,
        line="decay of the second moment in adam, adamw, nadam and rmsprop, of the mean in lion (0.99 in these two)",
    ),
    "eps": Hyper(
        default=1e-8, low=0.0, high=1.0, line="added to the denominator of adam and its relatives; adagrad: 1e-10"
    ),
    "clip_norm": Hyper(
        default=0.0,
        low=0.0,
        high=1e9,
        line="gradients are scaled down so that their norm is at most this; 0: never",
        optional=True,
    ),
    "ema": Hyper(
        default=0.0,
        low=0.0,
        high=0.999999,
        line="decay of a moving average of the weights, which is evaluated in their place; 0: none",
        optional=True,
    ),
    "dropout": Hyper(default=None, low=0.0, high=0.999, line="rate of every dropout layer; default: the design's own"),
    "label_smoothing": Hyper(default=0.0, low=0.0, high=0.999, line="probability spread over all classes"),
}


def family_of(task: str) -> str:
    """The family of the designs of a task.

    >>> family_of("classify"), family_of("own")
    ('classifier', 'own')
    """
    return OWN_TASK if task == OWN_TASK else TASKS[task].family


def is_path(name: str) -> bool:
    """Whether the `data` of a study is a path to the user's own file or folder, not the name of a data set.

    >>> [is_path(name) for name in ("mnist", "./mnist", "digits.npz", "..")]
    [False, True, True, True]
    """
    return "/" in name or "\\" in name or name.endswith(".npz") or name in (".", "..")


def metric_label(metric: str) -> str:
    """A metric's name for readers.

    >>> metric_label("cer"), metric_label("balanced_accuracy")
    ('character error rate', 'balanced accuracy')
    """
    labels = (task.metrics[metric].label for task in TASKS.values() if metric in task.metrics)
    return next((label for label in labels if label), metric.replace("_", " "))
