"""`tiebreak plan`: what a study would train, on which equal terms, and for how long."""

from __future__ import annotations

from pathlib import Path

from tiebreak.cli.data_commands import DataDirOption
from tiebreak.cli.out_option import OutOption
from tiebreak.cli.output import print_line
from tiebreak.cli.run_command import (
    DataOption,
    Device,
    DeviceOption,
    EpochsOption,
    GridOption,
    QuickOption,
    SeedsOption,
    StudyArgument,
    WorkersOption,
    chosen_study,
)
from tiebreak.cli.seed_options import AllDecidedOption, MaxSeedsOption, UntilDecidedOption, first_look, growing


def plan(
    study: StudyArgument,
    data: DataOption = None,
    data_dir: DataDirOption = None,
    seeds: SeedsOption = None,
    until_decided: UntilDecidedOption = False,
    until_all_decided: AllDecidedOption = False,
    max_seeds: MaxSeedsOption = None,
    epochs: EpochsOption = None,
    grid: GridOption = None,
    quick: QuickOption = False,
    device: DeviceOption = Device.cpu,
    workers: WorkersOption = None,
    out: OutOption = None,
) -> None:
    """Show what a study would train, on which equal terms, and for how long. Trains nothing."""
    from tiebreak.cli.prediction import show_prediction
    from tiebreak.drive.machine import Machine
    from tiebreak.plan.planner import make_plan
    from tiebreak.report.terminal import summaries
    from tiebreak.report.terminal.safe_console import SafeConsole
    from tiebreak.results.stored_study import stored_line
    from tiebreak.study.design_file import designs_are_code

    chosen, console = chosen_study(study, quick, data, seeds, epochs, grid), SafeConsole()
    chosen, looks = first_look(growing(chosen, seeds, until_decided, until_all_decided, max_seeds))
    if chosen.designs_from is not None:
        print_line(designs_are_code(chosen.designs_from))
    planned = make_plan(chosen, data_dir)
    summaries.print_plan(console, chosen, planned, looks)  # what takes no time first
    if line := stored_line(planned, out or Path("runs") / chosen.name):
        print_line(line)
    if chosen.program is None:
        show_prediction(console, planned, Machine(device=device, workers=workers, data_dir=data_dir))
