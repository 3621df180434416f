"""Which rows of `own_nets` a session on a GPU measures, each prepared by a process of its own."""

from __future__ import annotations

from collections.abc import Iterable

OURS, ALONE, PLAIN, EAGER = "ours fused", "alone", "plain compiled+graph", "plain eager"
Row = tuple[str, str, str, str]  # networks, numbers of runs, precision, side
NETS: list[Row] = [
    ("resnet-batchnorm resnet-groupnorm", "20", "tf32", OURS),
    ("translator lstm-language vit", "60", "tf32", OURS),
    ("resnet-batchnorm vit", "60", "bf16", OURS),
    ("resnet-groupnorm translator lstm-language", "1", "tf32", ALONE),
    ("resnet-groupnorm", "1", "tf32", PLAIN),
    ("resnet-groupnorm", "20", "tf32", "JAX library"),
    ("vit translator", "60", "tf32", "JAX library"),
]
MORE: list[Row] = [
    ("resnet-batchnorm resnet-groupnorm separable", "60", "tf32", OURS),
    ("vit separable", "20", "tf32", OURS),
    ("translator", "30", "tf32", OURS),
    ("lstm-language", "10 20", "tf32", OURS),
    ("resnet-batchnorm vit", "20", "bf16", OURS),
    ("resnet-groupnorm", "20 60", "bf16", OURS),
    ("separable translator lstm-language", "60", "bf16", OURS),
    ("resnet-batchnorm vit separable", "1", "tf32", ALONE),
    ("resnet-batchnorm vit separable lstm-language", "1", "tf32", PLAIN),
    ("resnet-batchnorm resnet-groupnorm vit separable lstm-language", "1", "bf16", PLAIN),
    ("translator", "1", "tf32", EAGER),
    ("resnet-batchnorm resnet-groupnorm separable", "20 60", "tf32", "JAX slices"),
    ("resnet-batchnorm", "20", "tf32", "JAX library"),
    ("resnet-batchnorm", "60", "bf16", "JAX slices"),
    ("vit", "20", "tf32", "JAX library"),
    ("translator", "30", "tf32", "JAX library"),
    ("vit", "60", "bf16", "JAX library"),
    ("lstm-language", "10 20 60", "tf32", "JAX library"),
    ("translator lstm-language", "60", "bf16", "JAX library"),
]


def each_of(rows: Iterable[Row]) -> list[Row]:
    """One row for each network and number of runs."""
    return [(net, n, *how) for names, runs, *how in rows for n in runs.split() for net in names.split()]  # type: ignore[misc]
