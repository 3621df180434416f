"""Folders of TensorBoard event files, read by tensorboard (an extra): the last value of every scalar of a run.

The library stops at the first damaged record and says nothing; the last value that it found is then an earlier one. So
the records of a file are counted, and the library has to read them all.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tiebreak.errors import TiebreakError
from tiebreak.exchange.extras import require
from tiebreak.exchange.run_table import Cell, Table, from_runs, walk
from tiebreak.text import number_of, printable

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
    cut = 0
    for number, place in enumerate(folders):
        if progress is not None:
            progress("event folders", number, len(folders))
        try:
            found = module.EventAccumulator(str(place), size_guidance={"scalars": 1, "tensors": 1})
            found.Reload()
            scalars = _last_scalars(found)
            parameters = _hparams(found)
            cut += _is_cut(place)
        except TiebreakError:
            raise
        except Exception as error:  # whatever a library raises on damaged files
            reason = " ".join(str(error).split())[:200]
            raise TiebreakError(f"{printable(place)}: event files that cannot be read ({reason})") from None
        tags |= scalars.keys()
        runs.append((place.relative_to(folder).as_posix(), {**parameters, **scalars}))
    runs = [(name, values) for name, values in runs if values]
    if not tags:
        raise TiebreakError(f"{printable(folder)}: its event files hold no scalar")
    notes = ["the score of a run is the last value that it logged"]
    if cut:
        notes.append(
            f"{number_of(cut, 'run')} cut off inside a record, as when it was killed: the value before it is used"
        )
    return from_runs(folder, runs, tags, notes=notes)


def _last_scalars(found: Any) -> dict[str, float]:
    tags = found.Tags()
    scalars = {tag: float(found.Scalars(tag)[-1].value) for tag in tags["scalars"]}
    for tag in tags["tensors"]:
        if found.SummaryMetadata(tag).plugin_data.plugin_name == "scalars":
            tensors = require("tensorboard.util.tensor_util", "tensorboard", "event files")
            scalars[tag] = float(tensors.make_ndarray(found.Tensors(tag)[-1].tensor_proto))
    return scalars


def _is_cut(place: Path) -> bool:
    """Whether a file of a run ends inside a record. A run with a record that the library does not read is refused."""
    loader = require("tensorboard.backend.event_processing.event_file_loader", "tensorboard", "event files")
    cut = False
    for path in sorted(path for path in place.iterdir() if path.name.startswith(EVENTS)):
        records, ends_inside = _count_records(path)
        read = sum(1 for _ in loader.RawEventFileLoader(str(path)).Load())
        if read < records:
            raise TiebreakError(
                f"{printable(path)}: damaged: record {read + 1} of {records} cannot be read, so that its last values "
                "are not the last; copy it again, or leave this run out"
            )
        cut = cut or ends_inside
    return cut


def _count_records(path: Path) -> tuple[int, bool]:
    """How many whole records a file has (length, its checksum, content, its checksum); whether it ends inside one."""
    size, place, count = path.stat().st_size, 0, 0
    with path.open("rb") as file:
        while place + 12 <= size:
            file.seek(place)
            place += 12 + struct.unpack("<Q", file.read(8))[0] + 4
            count += place <= size
    return count, place != size


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
