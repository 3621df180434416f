"""What `tiebreak plan` predicts: the cohorts with their memory and time, and how the time was estimated."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from tiebreak.drive.device import device_problem
from tiebreak.drive.forecast import forecast
from tiebreak.drive.jobs import most_at_once
from tiebreak.drive.machine import Machine
from tiebreak.plan.predict import predict
from tiebreak.plan.runs import Plan
from tiebreak.report.terminal import summaries
from tiebreak.text import printable

# What training one after the other costs, as measured: 16 runs of two CNNs on a core, 20 of three networks on an H200.
COSTS = {
    "cpu": "on a CPU that takes CNNs 1.4 to 2 times as long",
    "cuda": "on a GPU that takes 2 to 11 times as long where a step can be a CUDA graph, else 8 to 100 times",
}


def show_prediction(console: Console, plan: Plan, machine: Machine) -> None:
    """Time a few steps of every cohort and print what follows; on a GPU no time is predicted."""
    processes, device = machine.processes(), machine.device
    predicted = predict(plan)
    with console.status("timing training steps") as status:

        def tell(name: str) -> None:
            status.update(f"timing {escape(printable(name))}: one run after the other, and fused")

        times = forecast(plan, machine, tell) if device == "cpu" else None
    rows = []
    for item in predicted.cohorts:
        alone = item.cannot_fuse or (times is not None and times.strategies[item.key] == "loop")
        at_once = 1 if alone else most_at_once(item.runs, device, processes)
        rows.append(
            summaries.CohortRow(
                name=item.name,
                runs=item.runs,
                parameters=item.parameters,
                at_once=at_once,
                memory=at_once * item.run_bytes,
                cannot_fuse=item.cannot_fuse,
                run_by_run=item.run_by_run,
                cost=COSTS.get(device, "") if device != "cpu" or item.convolutions else "",
                seconds=times.cohorts[item.key] if times is not None else None,
            )
        )
    memory = processes * (predicted.process_bytes + max(row.memory for row in rows))
    summaries.print_cohorts(console, rows, memory)
    if times is not None:
        summaries.print_prediction(console, times.total, times.how)
    else:
        how = device_problem(device) or "on a GPU, `tiebreak run` times its steps before it begins"
        summaries.print_prediction(console, None, how)
