"""The plan of a study of the user's own program: the same Plan and Run as for networks, made without torch.

A run is named by its command template or function, the hashes of the files that it names, the values that are put in,
and the seed; not by the arm's name (unless the command has {arm}), nor by the folder where the program lies.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.plan.program_files import ProgramFiles
from tiebreak.plan.program_terms import program_terms, program_warnings
from tiebreak.plan.runs import DataSummary, Plan, PlannedArm, Run, digest, run_key
from tiebreak.study import program_rules
from tiebreak.study.command_template import fill, names_in, placeholders
from tiebreak.study.program_keys import PROGRAM, Program
from tiebreak.study.program_rules import command_of, function_of
from tiebreak.study.registry import Scalar
from tiebreak.study.schema import Arm, Study

COMPARABILITY = 1  # raised when the way in which a program is run changes its numbers


def require_program(study: Study, where: str = "") -> None:
    """Refuse a study whose program, or script, is not there: one line with the key, before anything is written."""
    try:
        program_rules.check_exists(study)
    except ValueError as error:
        raise TiebreakError(f"{where or f'study {study.name}'}: {error}") from None


def program_inputs(study: Study) -> list[str]:
    """The hashes of the files that the plan of a program is made of."""
    found = ProgramFiles(Path(_program(study).folder))
    for arm in study.arms:
        for setting in study.settings(arm):
            _hashes(study, arm, setting, 0, found)
    return sorted(f"{name} {value}" for name, value in found.hashes.items())


def make_program_plan(study: Study, inputs: str) -> Plan:
    """Every run that the study of a program needs."""
    found = ProgramFiles(Path(_program(study).folder))
    runs: dict[str, Run] = {}
    arms = []
    for arm in study.arms:
        keys = {}
        for setting in study.settings(arm):
            for seed in range(study.seeds):
                run = _run(study, arm, setting, seed, found)
                runs[run.identity] = run
                keys[run_key(setting, seed)] = run.identity
        arms.append(
            PlannedArm(name=arm.name, design=arm.design, evaluation="default", runs=keys, parameters=None, flops=None)
        )
    return Plan(
        study=study.name,
        inputs=inputs,
        data=DataSummary(name=study.data, checksum="", official=None, sizes={}, licence="", citation=""),
        arms=tuple(arms),
        runs=runs,
        terms=program_terms(study, found),
        warnings=tuple(program_warnings(study)),
    )


def _program(study: Study) -> Program:
    assert study.program is not None
    return study.program


def _run(study: Study, arm: Arm, setting: Mapping[str, float], seed: int, found: ProgramFiles) -> Run:
    program = _program(study)
    command = command_of(program, arm)
    what = list(command) or [f"call {function_of(program, arm)}", program.source]
    build = dict(arm.with_values)
    if command and "arm" in names_in(command):
        build["arm"] = arm.name
    return Run(
        design=arm.design,
        source=digest([what, _hashes(study, arm, setting, seed, found), program.scores]),
        build=build,
        task=PROGRAM,
        options=dict(setting),
        data=study.data,
        checksum="",
        optimiser=study.optimiser,
        hypers={},
        setting=dict(setting),
        seed=seed,
        epochs=study.budget.epochs,
        batch=study.budget.batch,
        comparability=COMPARABILITY,
        evaluations=({},),
    )


def _hashes(study: Study, arm: Arm, setting: Mapping[str, float], seed: int, found: ProgramFiles) -> Mapping[str, str]:
    """The hashes of the files that the run's command names, or of its function's module."""
    program = _program(study)
    command = command_of(program, arm)
    if command:
        values: dict[str, Scalar] = {**arm.with_values, **setting, "arm": arm.name, "seed": seed}
        known = [part for part in command if set(placeholders(part)) <= set(values)]
        numbers = {f"{{{name}}}" for name in (*setting, "seed")}  # a whole argument that is a number names no file
        return found.of_command(fill(part, values) for part in known if part not in numbers)
    return {} if program.in_process else found.of_module(function_of(program, arm).partition(":")[0])
