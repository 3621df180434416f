"""Equal terms of a study of a program: what Tiebreak can check, and what only the program knows."""

from __future__ import annotations

from tiebreak.plan.program_files import ProgramFiles
from tiebreak.plan.resolve import comparison_count
from tiebreak.plan.runs import Term
from tiebreak.study.command_template import value_text
from tiebreak.study.program_rules import program_line
from tiebreak.study.schema import Arm, Study
from tiebreak.text import listed, number_of


def program_terms(study: Study, found: ProgramFiles) -> tuple[Term, ...]:
    """What is equal for all arms, what is not, and what is not checked."""
    program = study.program
    assert program is not None
    commands = list(dict.fromkeys(program_line(study, arm) for arm in study.arms))
    grids = list(dict.fromkeys(_grid(study, arm) for arm in study.arms))
    tuned = any(len(study.settings(arm)) > 1 for arm in study.arms)
    limit = f", at most {program.timeout} a run" if program.timeout else ""
    return (
        Term(name="data and split", equal=None, value="the program's own: Tiebreak does not see them"),
        Term(name="budget", equal=None, value="the program's own: epochs, batches, early stopping"),
        Term(name="command", equal=len(commands) == 1, value="; ".join(commands)),
        Term(name="values", equal=False, value="; ".join(_values(arm) for arm in study.arms)),
        Term(name="tuning", equal=len(grids) == 1, value=" / ".join(grids)),
        Term(
            name="seeds",
            equal=True,
            value=f"0 to {study.seeds - 1} for every arm and setting; what a seed decides is the program's own",
        ),
        Term(
            name="selection",
            equal=True,
            value="the setting with the best mean of `val`" if tuned else "one setting: nothing is selected",
        ),
        Term(name="test set", equal=True, value="`test` is read for the verdict only; never used to choose"),
        Term(
            name="resources",
            equal=True,
            value=f"{number_of(program.cores, 'core')} and {program.gpus:g} GPUs for each run{limit}",
        ),
        Term(name="code", equal=None, value=_code(found, program.in_process)),
    )


def _grid(study: Study, arm: Arm) -> str:
    values = study.grid_of(arm).items()
    return (
        "; ".join(f"{name} in {', '.join(map(value_text, each))}" for name, each in values) or "nothing is tuned here"
    )


def _values(arm: Arm) -> str:
    values = ", ".join(f"{name}={value_text(value)}" for name, value in arm.with_values.items())
    return f"{arm.name}: {values or 'none of its own'}"


def _code(found: ProgramFiles, in_process: bool) -> str:
    """What a run is named by, so that a change makes new runs; and what can change unnoticed."""
    own = "the text of the function, or of helpers, numbers and texts that it uses," if in_process else "no file"
    named = listed(list(found.hashes)) if found.hashes else own
    skipped = "".join(f" {name} ({why})," for name, why in found.skipped.items())
    other = "other objects that it uses from outside, " if in_process else "files that it opens by itself, "
    return (
        f"a change of {named} makes new runs; not noticed:{skipped} {other}installed packages, data and the environment"
    )


def program_warnings(study: Study) -> list[str]:
    """What to know before the program is run."""
    from tiebreak.verdict.statistics import too_few_seeds

    line = too_few_seeds(study.seeds, comparison_count(study))
    return [line] if line else []
