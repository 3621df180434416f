"""Where a fused training step of a study's arm spends its time on a GPU: its kernels, by torch's profiler.

    python benchmarks/step_profile.py STUDY ARM [--seeds 8] [--precision bf16] [--data-dir DIR] [--compiled]
    python benchmarks/step_profile.py pooling pool --quick --seeds 2 --device cpu          operations of a CPU instead

All runs of the arm are trained as `tiebreak run` trains them, for a few replays that warm up and then for those that
are looked at: milliseconds of a step on the clock and in kernels, the most memory, and the kernels that take most.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from tiebreak.drive.messages import Job
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Run
from tiebreak.study.schema import Study
from tiebreak.train.fused.engine import STEPS, Fused
from tiebreak.train.run_group import RunGroup, make_group

LISTED = 30  # kernels
REPLAYS = 3


def group_of(given: argparse.Namespace) -> RunGroup:
    """The runs of the arm in their initial state; of a grid, its first setting."""
    study = Study.load(given.study)
    study = study.quickened() if given.quick else study
    plan = make_plan(study.changed(seeds=given.seeds), Path(given.data_dir) if given.data_dir else None)
    runs = [plan.runs[identity] for identity in plan.arm(given.arm).runs.values()]
    cohort = [run for run in runs if run.cohort == runs[0].cohort][: given.seeds]
    job = Job(
        runs=tuple(run.model_dump(mode="json") for run in cohort), folder=".", data_dir=given.data_dir,
        device=given.device, precision=given.precision, designs_from=plan.designs_from,
    )  # fmt: skip
    return make_group(job, [Run.model_validate(each) for each in job.runs])


def profiled(given: argparse.Namespace) -> dict[str, Any]:
    """What was found."""
    group = group_of(given)
    began = time.perf_counter()
    compiled = given.compiled if given.device == "cuda" else None
    engine = Fused(group.task, group.network, group.runs, group.states, compiled=compiled, precision=group.precision)
    train, steps = group.split("train", {}), STEPS if given.device == "cuda" else 1
    engine.train_steps(train, steps)
    prepared, start = time.perf_counter() - began, time.perf_counter()
    for _ in range(REPLAYS):
        engine.train_steps(train, steps)
    clock = (time.perf_counter() - start) / REPLAYS / steps
    activity = ProfilerActivity.CUDA if given.device == "cuda" else ProfilerActivity.CPU
    with profile(activities=[activity]) as found:
        engine.train_steps(train, steps)
    events = [each for each in found.key_averages() if each.device_time_total or each.self_cpu_time_total]
    own = [(each.self_device_time_total or each.self_cpu_time_total, each.count, each.key) for each in events]
    own.sort(reverse=True)
    return {
        "benchmark": "step_profile", "study": given.study, "arm": given.arm, "n": len(group.runs),
        "precision": given.precision, "compiled": given.compiled, "prepared_s": round(prepared, 1),
        "ms_step": round(1000 * clock, 3), "ms_kernels": round(sum(us for us, *_ in own) / 1000 / steps, 3),
        "launches": round(sum(count for _, count, _ in own) / steps, 1),
        "memory_mb": round(torch.cuda.max_memory_allocated() / 2**20) if given.device == "cuda" else None,
        "kernels": [[key[:100], round(count / steps, 1), round(us / steps, 1)] for us, count, key in own[:LISTED]],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study")
    parser.add_argument("arm")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--data-dir")
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--precision", default="float32", choices=("float32", "tf32", "bf16"))
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    row = profiled(given)
    kernels = row["kernels"]
    print(json.dumps({**row, "kernels": len(kernels)}))
    for name, count, us in kernels:
        print(f"{us:10.1f} us {count:6.1f} x  {name}")
    if given.out:
        given.out.write_text(json.dumps([row], indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
