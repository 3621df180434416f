"""Files that other tools write, made without them: a W&B export, an mlruns/ folder, trainer states."""

from __future__ import annotations

import json
from pathlib import Path

ARMS = {"resnet": 0.9, "vit": 0.92}
SEEDS = 7


def value(arm: str, seed: int) -> float:
    """The score of a run: the arms differ, and every seed a little."""
    return round(ARMS[arm] + 0.001 * ((seed * 5 + len(arm)) % 7), 6)


SCORES: dict[str, dict[int | str, float]] = {arm: {seed: value(arm, seed) for seed in range(SEEDS)} for arm in ARMS}


def wandb_runs(path: Path) -> Path:
    """W&B's table of runs, with a run that crashed."""
    rows = [f'"{arm}-{seed}","finished","{arm}","{seed}","{value(arm, seed)}"' for arm in ARMS for seed in range(SEEDS)]
    path.write_text("\n".join(['"Name","State","arch","seed","val/acc"', *rows, '"vit-9","crashed","vit","9",""']))
    return path


def wandb_chart(path: Path) -> Path:
    """The values of a W&B chart: three columns for each run."""
    runs = [(arm, seed) for arm in ARMS for seed in range(SEEDS)]
    ends = ("", "__MIN", "__MAX")
    head = ",".join(f'"{arm}-seed{seed} - val/acc{end}"' for arm, seed in runs for end in ends)
    steps = [
        ",".join(f'"{value(arm, seed) - 0.1 * (2 - step)}"' for arm, seed in runs for _ in ends) for step in range(3)
    ]
    path.write_text("\n".join([f'"Step",{head}', *(f'"{step}",{line}' for step, line in enumerate(steps))]))
    return path


def mlruns(folder: Path) -> Path:
    """MLflow's folder of one experiment, with a run that still runs and one that was deleted."""
    experiment = folder / "mlruns" / "123"
    experiment.mkdir(parents=True)
    (experiment / "meta.yaml").write_text("experiment_id: '123'\nname: arch\nlifecycle_stage: active\n")
    more = [("resnet", 20, 1, "active"), ("resnet", 21, 3, "deleted")]
    for arm, seed, status, stage in [*((arm, seed, 3, "active") for arm in ARMS for seed in range(SEEDS)), *more]:
        run = experiment / f"{arm}{seed}"
        (run / "metrics" / "val").mkdir(parents=True)
        (run / "params").mkdir()
        meta = f"run_id: {arm}{seed}\nrun_name: '{arm}-{seed}'\nstatus: {status}\nlifecycle_stage: {stage}\n"
        (run / "meta.yaml").write_text(f"{meta}start_time: {1000 + seed}\n")
        (run / "params" / "arch").write_text(arm)
        (run / "params" / "seed").write_text(str(seed))
        last = value(arm, seed) if seed < SEEDS else 0.5
        (run / "metrics" / "val" / "acc").write_text(f"11 {last} 2\n10 {last - 0.1} 1\n")
    return folder / "mlruns"


def trainer_states(folder: Path) -> Path:
    """Two checkpoints of every run of Hugging Face's Trainer."""
    for arm in ARMS:
        for seed in range(SEEDS):
            for step in (90, 100):
                place = folder / "hf" / arm / f"seed-{seed}" / f"checkpoint-{step}"
                place.mkdir(parents=True)
                accuracy = value(arm, seed) - (100 - step) / 1000
                history = [{"loss": 1.5, "step": 50}, {"eval_accuracy": accuracy, "epoch": 1.0, "step": step}]
                (place / "trainer_state.json").write_text(json.dumps({"best_metric": 0.9, "log_history": history}))
    return folder / "hf"
