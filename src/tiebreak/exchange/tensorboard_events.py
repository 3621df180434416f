"""Folders of TensorBoard event files, read by tensorboard (an extra): the last value of every scalar of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tiebreak.errors import TiebreakError
from tiebreak.exchange.extras import require
from tiebreak.exchange.run_table import Cell, Table, from_runs, walk
from tiebreak.text import printable

EVENTS = "events.out.tfevents."
HPARAMS = "hparams"
Progress = Callable[[str, int, int], None]


def event_folders(folder: Path) -> list[Path]:
    """The folders below this one that hold event files: a run each."""
    return list(dict.fromkeys(path.parent for path in walk(folder) if path.name.startswith(EVENTS)))


def read_tensorboard(folder: Path, progress: Progress | None = None) -> Table:
    """The runs below a folder, named by their paths, with the last value of each scalar and with hparams if written."""
    module = require(
        "tensorboard.backend.event_processing.event_accumulator", "tensorboard", f"{folder}: reading event files"
    )
    folders = event_folders(folder)
    if not folders:
        raise TiebreakError(f"{printable(folder)}: no event file below it ({EVENTS}…)")
    runs: list[tuple[str, dict[str, Cell]]] = []
    tags: set[str] = set()
    for number, place in enumerate(folders):
        if progress is not None:
            progress("event folders", number, len(folders))
        try:
            found = module.EventAccumulator(str(place), size_guidance={"scalars": 1, "tensors": 1})
            found.Reload()
            scalars = _last_scalars(found)
            parameters = _hparams(found)
        except Exception as error:  # whatever a library raises on damaged files
            reason = " ".join(str(error).split())[:200]
            raise TiebreakError(f"{printable(place)}: event files that cannot be read ({reason})") from None
        tags |= scalars.keys()
        runs.append((place.relative_to(folder).as_posix(), {**parameters, **scalars}))
    runs = [(name, values) for name, values in runs if values]
    if not tags:
        raise TiebreakError(f"{printable(folder)}: its event files hold no scalar")
    return from_runs(folder, runs, tags, notes=["the score of a run is the last value that it logged"])


def _last_scalars(found: Any) -> dict[str, float]:
    tags = found.Tags()
    scalars = {tag: float(found.Scalars(tag)[-1].value) for tag in tags["scalars"]}
    for tag in tags["tensors"]:
        if found.SummaryMetadata(tag).plugin_data.plugin_name == "scalars":
            tensors = require("tensorboard.util.tensor_util", "tensorboard", "event files")
            scalars[tag] = float(tensors.make_ndarray(found.Tensors(tag)[-1].tensor_proto))
    return scalars


def _hparams(found: Any) -> dict[str, Cell]:
    """The hyper-parameters of the HParams plugin."""
    messages = require("tensorboard.plugins.hparams.plugin_data_pb2", "tensorboard", "event files")
    values: dict[str, Cell] = {}
    try:
        content = found.PluginTagToContent(HPARAMS)
    except KeyError:  # a run without hparams
        return values
    for raw in content.values():
        for name, value in messages.HParamsPluginData.FromString(raw).session_start_info.hparams.items():
            kind = value.WhichOneof("kind")
            values[name] = getattr(value, kind) if kind in ("number_value", "string_value", "bool_value") else None
    return values
