"""Training steps of two arms of a study, each timed alone and in turns:

    python benchmarks/step_times.py STUDY A B [--quick] [--data-dir DIR] [--device cuda] [--precision tf32] [--save]

Says how many times longer a step of arm A takes than one of arm B. One run of each arm, trained as `tiebreak` trains a
run alone (no fusing). The ratio is that of neighbouring rounds; its 95 % interval is Student's t over the logarithms.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from scipy import stats as scipy_stats

import timing
from tiebreak.drive.messages import Job
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Plan
from tiebreak.study.schema import Study
from tiebreak.tasks.interface import Split, select
from tiebreak.train.loop import Loop
from tiebreak.train.run_group import make_group


def prepare(plan: Plan, arm: str, given: argparse.Namespace) -> tuple[Loop, Split]:
    """A run of the arm, ready to train, and the examples of a few steps."""
    run = plan.runs[next(iter(plan.arm(arm).runs.values()))]
    job = Job(
        runs=(run.model_dump(mode="json"),), folder=".", data_dir=given.data_dir, device=given.device,
        precision=given.precision, designs_from=plan.designs_from,
    )  # fmt: skip
    group = make_group(job, [run])
    few = select(group.task, group.split("train", {}), lambda values: values[: given.steps * run.batch])
    return Loop(group.task, group.network, group.runs[0], group.states[0]), few


def seconds(loop: Loop, few: Split, steps: int) -> float:
    start = time.perf_counter()
    loop.train_epoch(few, lambda share, done: None)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study")
    parser.add_argument("a")
    parser.add_argument("b")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data-dir")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--precision", default="float32", choices=("float32", "tf32"), help="on a GPU")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=6, help="in a round")
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1 if given.device == "cpu" else torch.get_num_threads())
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = given.precision == "tf32"
    study = Study.load(given.study)
    plan = make_plan(study.quickened() if given.quick else study, Path(given.data_dir) if given.data_dir else None)
    made = [prepare(plan, arm, given) for arm in (given.a, given.b)]
    times: list[list[float]] = [[], []]
    for number in range(given.rounds + 1):
        for which in (0, 1) if number % 2 else (1, 0):
            spent = seconds(*made[which], given.steps)
            if number:  # the first round warms up
                times[which].append(spent)
    logs = np.log(times[0]) - np.log(times[1])
    half = float(scipy_stats.t.ppf(0.975, len(logs) - 1)) * logs.std(ddof=1) / len(logs) ** 0.5
    ratio, low, high = (float(np.exp(value)) for value in (logs.mean(), logs.mean() - half, logs.mean() + half))
    ours, peer = (1000 * statistics.median(each) for each in times)
    print(
        f"{given.a} {ours:.2f} ms a step, {given.b} {peer:.2f} ms: {given.a} takes {ratio:.3f} times as long "
        f"(95 % {low:.3f} to {high:.3f}, {len(logs)} rounds)"
    )
    if given.save:
        row = {
            "benchmark": "step_times", "case": f"{study.name}, {study.data}, {given.precision}", "n": 1,
            "ours": given.a, "ours_ms": round(ours, 3), "peer": given.b, "peer_ms": round(peer, 3),
            "ratio": round(ratio, 4), "low": round(low, 4), "high": round(high, 4), "rounds": len(logs),
        }  # fmt: skip
        name = torch.cuda.get_device_name() if given.device == "cuda" else ""
        print(timing.save(f"step-times-{study.name}-{given.a}-{given.b}", [row], device=name))


if __name__ == "__main__":
    main()
