"""Training steps of two arms of a study, each timed alone and in turns, as `tiebreak run` times them but for longer:

    python benchmarks/step_times.py STUDY A B [--quick] [--data-dir DIR] [--device cuda] [--precision tf32] [--save]

Says how many times longer a step of arm A takes than one of arm B. One run of each arm, trained as `tiebreak` trains a
run in a loop. The ratio is the median over neighbouring rounds, its 95 % interval that of `verdict.solo_time`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

import torch

import timing
from tiebreak.drive.messages import Job, Note, StepsTimed
from tiebreak.drive.step_turns import time_in_turns
from tiebreak.plan.planner import make_plan
from tiebreak.study.schema import Study
from tiebreak.verdict.solo_time import median_ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study")
    parser.add_argument("a")
    parser.add_argument("b")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data-dir")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--precision", default="float32", choices=("float32", "tf32", "bf16"))
    parser.add_argument("--seconds", type=float, default=60.0, help="for all rounds")
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1 if given.device == "cpu" else torch.get_num_threads())
    study = Study.load(given.study)
    plan = make_plan(study.quickened() if given.quick else study, Path(given.data_dir) if given.data_dir else None)
    runs = [plan.runs[next(iter(plan.arm(arm).runs.values()))] for arm in (given.a, given.b)]
    if runs[0].cohort == runs[1].cohort:
        sys.exit(f"{given.a} and {given.b} are trained alike: there is nothing to compare")
    job = Job(
        runs=tuple(run.model_dump(mode="json") for run in runs), folder=".", data_dir=given.data_dir, work="time",
        device=given.device, precision=given.precision, designs_from=plan.designs_from, seconds=given.seconds,
    )  # fmt: skip
    times: dict[str, tuple[float, ...]] = {}
    for message in time_in_turns(job):
        if isinstance(message, Note):
            sys.exit(message.text)
        if isinstance(message, StepsTimed):
            times = {each.cohort: each.ms for each in message.times}
    a, b = (times[run.cohort] for run in runs)
    found = median_ratio(a, b)
    if found is None:
        sys.exit(f"{given.seconds:g} seconds are too few for six rounds; use --seconds")
    ratio, low, high = found
    ours, peer = statistics.median(a), statistics.median(b)
    print(
        f"{given.a} {ours:.2f} ms a step, {given.b} {peer:.2f} ms: {given.a} takes {ratio:.3f} times as long "
        f"(95 % {low:.3f} to {high:.3f}, {len(a)} rounds)"
    )
    if given.save:
        row = {
            "benchmark": "step_times", "case": f"{study.name}, {study.data}, {given.precision}", "n": 1,
            "ours": given.a, "ours_ms": round(ours, 3), "peer": given.b, "peer_ms": round(peer, 3),
            "ratio": round(ratio, 4), "low": round(low, 4), "high": round(high, 4), "rounds": len(a),
        }  # fmt: skip
        name = torch.cuda.get_device_name() if given.device == "cuda" else ""
        print(timing.save(f"step-times-{study.name}-{given.a}-{given.b}", [row], device=name))


if __name__ == "__main__":
    main()
