"""The options of `run` and `plan` that say how many seeds to train: until the question is decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tiebreak.errors import TiebreakError

if TYPE_CHECKING:
    from tiebreak.study.schema import Study

UntilDecidedOption = Annotated[
    bool, typer.Option("--until-decided", help="Train seeds in batches until the primary comparison is decided.")
]
AllDecidedOption = Annotated[
    bool, typer.Option("--until-all-decided", help="The same until every comparison is decided.")
]
MaxSeedsOption = Annotated[
    int | None, typer.Option("--max-seeds", min=1, metavar="N", help="Where --until-decided stops; default: 60.")
]


def growing(study: Study, seeds: int | None, until_decided: bool, until_all: bool, max_seeds: int | None) -> Study:
    """The study with seeds until it is decided, if the options ask for it."""
    if seeds is not None and (until_decided or until_all or max_seeds is not None):
        raise TiebreakError(f"--seeds {seeds} with --until-decided: give --max-seeds {seeds} for the most to train")
    if until_decided and until_all:
        raise TiebreakError("--until-decided with --until-all-decided: give one; the second takes every comparison")
    if max_seeds is not None and not (until_decided or until_all or study.until_decided):
        raise TiebreakError(
            f"--max-seeds {max_seeds}: only with --until-decided; for a fixed number of seeds give --seeds {max_seeds}"
        )
    comparisons = "all" if until_all else "primary" if until_decided else None
    return study.growing(until_decided=until_decided or until_all, max_seeds=max_seeds, comparisons=comparisons)


def first_look(study: Study) -> tuple[Study, tuple[int, ...]]:
    """The study with the seeds of its first look, and the seeds at every look; none for a fixed number of seeds."""
    from tiebreak.plan.resolve import comparison_count
    from tiebreak.verdict.stopping import batch_sizes

    if study.until_decided is None:
        return study, ()
    sizes = batch_sizes(study, comparison_count(study))
    return study.changed(seeds=sizes[0], until_decided=study.until_decided), sizes
