"""`tiebreak log`: runs handed over to MLflow, TensorBoard or W&B (offline), by their own libraries (extras)."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from tiebreak.errors import TiebreakError
from tiebreak.exchange.extras import require
from tiebreak.exchange.logged_runs import LoggedRun

Tracker = Literal["mlflow", "tensorboard", "wandb-offline"]
Progress = Callable[[int, int], None]
LONGEST = 500  # characters of a parameter in MLflow
DATABASE = "mlflow.db"


def log_runs(runs: Sequence[LoggedRun], study: str, tracker: Tracker, out: Path, progress: Progress) -> str:
    """Write the runs into the folder `out`, which must be new or empty; how to look at them."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise TiebreakError(f"{out}: already there; remove it, or give --out another folder")
    if not runs:
        raise TiebreakError("no run has ended yet, so there is nothing to log; see `tiebreak status`")
    write = {"mlflow": _to_mlflow, "tensorboard": _to_tensorboard, "wandb-offline": _to_wandb}[tracker]
    return write(runs, study, out, progress)


def _to_mlflow(runs: Sequence[LoggedRun], study: str, out: Path, progress: Progress) -> str:
    entities = require("mlflow.entities", "mlflow", "--to mlflow")
    require("sqlalchemy", "mlflow", "--to mlflow")
    client_module = require("mlflow.tracking", "mlflow", "--to mlflow")
    out.mkdir(parents=True, exist_ok=True)
    uri = f"sqlite:///{out.resolve() / DATABASE}"
    client = client_module.MlflowClient(tracking_uri=uri)
    experiment = client.create_experiment(study, artifact_location=str(out.resolve() / "artifacts"))
    for number, run in enumerate(runs):
        progress(number, len(runs))
        identity = client.create_run(experiment, run_name=run.name, tags=dict(run.tags)).info.run_id
        now = int(time.time() * 1000)
        metrics = [entities.Metric(_key(key), value, now, epoch)
                   for epoch, values in run.epochs.items() for key, value in values.items()]  # fmt: skip
        last = max(run.epochs, default=0)
        metrics += [entities.Metric(_key(key), value, now, last) for key, value in run.final.items()]
        params = [entities.Param(_key(key), str(value)[:LONGEST]) for key, value in run.parameters.items()]
        client.log_batch(identity, params=params)
        for start in range(0, len(metrics), 1000):  # as many as MLflow takes at once
            client.log_batch(identity, metrics=metrics[start : start + 1000])
        client.set_terminated(identity, "FINISHED" if run.status == "done" else "FAILED")
    return f"mlflow ui --backend-store-uri {uri}"


def _key(name: str) -> str:
    return re.sub(r"[^\w\-. /:]", "_", name)


def _to_tensorboard(runs: Sequence[LoggedRun], study: str, out: Path, progress: Progress) -> str:
    writer_module = require("tensorboard.summary.writer.event_file_writer", "tensorboard", "--to tensorboard")
    events = require("tensorboard.compat.proto.event_pb2", "tensorboard", "--to tensorboard")
    summaries = require("tensorboard.compat.proto.summary_pb2", "tensorboard", "--to tensorboard")
    for number, run in enumerate(runs):
        progress(number, len(runs))
        writer = writer_module.EventFileWriter(str(out / _folder(run)))
        writer.add_event(events.Event(wall_time=time.time(), summary=_hparams(run)))
        steps = [*run.epochs.items(), (max(run.epochs, default=0), run.final)]
        for step, values in steps:
            found = [summaries.Summary.Value(tag=key, simple_value=value) for key, value in values.items()]
            writer.add_event(events.Event(wall_time=time.time(), step=step, summary=summaries.Summary(value=found)))
        writer.close()
    return f"tensorboard --logdir {out}"


def _hparams(run: LoggedRun) -> Any:
    """The parameters as TensorBoard's HParams plugin reads them; its own function for that needs tensorflow."""
    summaries = require("tensorboard.compat.proto.summary_pb2", "tensorboard", "--to tensorboard")
    plugin = require("tensorboard.plugins.hparams.plugin_data_pb2", "tensorboard", "--to tensorboard")
    info = plugin.SessionStartInfo()
    for key, value in run.parameters.items():
        if isinstance(value, str):
            info.hparams[key].string_value = value
        else:
            info.hparams[key].number_value = value
    content = plugin.HParamsPluginData(session_start_info=info, version=0).SerializeToString()
    data = summaries.SummaryMetadata.PluginData(plugin_name="hparams", content=content)
    metadata = summaries.SummaryMetadata(plugin_data=data)
    return summaries.Summary(value=[summaries.Summary.Value(tag="_hparams_/session_start_info", metadata=metadata)])


def _folder(run: LoggedRun) -> Path:
    """A folder for the run: its arm, its setting and seed, as names that every file system takes."""
    arm = str(run.parameters["arm"])
    rest = run.name.removeprefix(arm).strip()
    safe = [re.sub(r"[^\w\-.=]+", "_", part)[:100].strip(".") or "_" for part in (arm, rest)]
    return Path(*safe)


def _to_wandb(runs: Sequence[LoggedRun], study: str, out: Path, progress: Progress) -> str:
    wandb = require("wandb", "wandb", "--to wandb-offline")
    out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("WANDB_SILENT", "true")
    settings = wandb.Settings(mode="offline", console="off", disable_git=True, x_disable_stats=True)
    project = re.sub(r"[^\w\-.]+", "-", study)
    for number, run in enumerate(runs):
        progress(number, len(runs))
        logged = wandb.init(
            project=project, name=run.name, group=str(run.parameters["arm"]), dir=str(out), config=dict(run.parameters),
            tags=[run.status], settings=settings,
        )  # fmt: skip
        for epoch, values in run.epochs.items():
            logged.log(dict(values), step=epoch)
        logged.summary.update({**run.final, **run.tags})
        logged.finish(exit_code=0 if run.status == "done" else 1)
    return f"wandb sync {out / 'wandb'}/offline-run-*"
