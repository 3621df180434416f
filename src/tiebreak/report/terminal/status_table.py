"""How far the runs of a study are, in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tiebreak.plan.runs import Plan, PlannedArm
from tiebreak.report.training_speed import training_rows
from tiebreak.results.record import PROGRAM_RUNS, TrainingState
from tiebreak.study.program_keys import PROGRAM
from tiebreak.text import number_of, printable

MOST_ROWS = 100  # of the table
MOST_OUTPUTS, OUTPUT_LINES = 5, 10  # of programs that failed: how many, and the last lines of each


def print_status(console: Console, plan: Plan, state: TrainingState) -> None:
    """How many runs of every arm are done at every setting; above `MOST_ROWS` lines, one line for each arm."""
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    table.add_column("arm", overflow="fold")
    table.add_column("setting", overflow="fold")
    program = any(run.task == PROGRAM for run in plan.runs.values())
    for name in ("done", "diverged", "failed", "missing", *(() if program else ("epochs",))):
        table.add_column(name, justify="right", no_wrap=True)
    groups = {arm.name: _by_setting(arm) for arm in plan.arms}
    if sum(map(len, groups.values())) > MOST_ROWS:
        groups = {name: _joined(settings) for name, settings in groups.items()}
    for arm, settings in groups.items():
        for setting, identities in settings.items():
            cells = _progress(plan, state, identities)
            table.add_row(Text(arm, style="bold"), Text(setting), *(cells[:-1] if program else cells))
    console.print(table)
    done = sum(state.runs[key].status == "done" for key in plan.runs if key in state.runs)
    console.print(Text(f"{done} of {number_of(len(plan.runs), 'run')} done"))
    _print_outputs(console, plan, state)
    for name, how in training_rows(plan, state):
        console.print(Text(printable(f"{name}: {how}"), style="dim"))


def _print_outputs(console: Console, plan: Plan, state: TrainingState) -> None:
    """Why runs of a program failed, with the last lines of their output."""
    failed = [(run, state.runs[key]) for key, run in plan.runs.items() if key in state.runs and state.runs[key].reason]
    failed = [(run, record) for run, record in failed if run.task == PROGRAM]
    for run, record in failed[:MOST_OUTPUTS]:
        console.print()
        console.print(Text(printable(f"{run.label}: {record.status}: {record.reason}"), style="yellow"))
        for line in record.output.splitlines()[-OUTPUT_LINES:]:
            console.print(Text(f"  {printable(line)}", style="dim"))
        console.print(Text(printable(f"  all of it: {PROGRAM_RUNS}/{record.identity}.log"), style="dim"))
    if len(failed) > MOST_OUTPUTS:
        console.print(Text(f"and {number_of(len(failed) - MOST_OUTPUTS, 'more run')} that failed or diverged"))


def _by_setting(arm: PlannedArm) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, identity in arm.runs.items():
        found.setdefault(key.rpartition("/")[0], []).append(identity)
    return found


def _joined(settings: dict[str, list[str]]) -> dict[str, list[str]]:
    label = next(iter(settings)) if len(settings) == 1 else number_of(len(settings), "setting")
    return {label: [identity for identities in settings.values() for identity in identities]}


def _progress(plan: Plan, state: TrainingState, identities: list[str]) -> list[Text]:
    found = [state.runs[identity].status if identity in state.runs else "missing" for identity in identities]
    trained = 0
    for identity in identities:
        run, ended = plan.runs[identity], state.runs.get(identity)
        trajectory = ended.trajectory if ended is not None else run.trajectory  # a hash: not computed where it is known
        epochs, most = state.epochs.get(trajectory, ()), run.most_epochs
        trained += len(epochs) if max(epochs, default=0) <= most else sum(epoch <= most for epoch in epochs)
    runs = [plan.runs[identity] for identity in identities]
    cells = [f"{found.count('done')} of {len(found)}"]
    cells += [str(found.count(status) or "-") for status in ("diverged", "failed", "missing")]
    return [Text(cell) for cell in (*cells, f"{trained} of {sum(run.epochs for run in runs)}")]
