"""A user's own task before it is trained on: its data, loaded once, and its functions, tried on a few examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tiebreak.data.user_paths import find_user_path
from tiebreak.errors import TiebreakError
from tiebreak.study.registry import is_path
from tiebreak.study.schema import Study

if TYPE_CHECKING:
    from torch import Tensor, nn

    from tiebreak.tasks.own_splits import OwnData
    from tiebreak.tasks.own_task import OwnTask

TRIED = 3  # examples: two of them are enough to be different, and one to differ in


def load_own(study: Study, texts: Mapping[str, str], data_dir: Path | None) -> OwnData:
    """The data of the study's own task; loaded again when a text of its code, or a file of the data, has changed."""
    path = find_user_path(study.data, data_dir).resolve() if is_path(study.data) else None
    return _loaded(tuple(sorted(texts.items())), study.designs_from or "", study.data, data_dir, _stamp(path))


@lru_cache(maxsize=1)
def _loaded(
    texts: tuple[tuple[str, str], ...], designs_from: str, data: str, data_dir: Path | None, stamp: tuple[Any, ...]
) -> OwnData:
    from tiebreak import catalog

    found: OwnData = catalog.find_task("own", designs_from).load(data, data_dir)
    return found


def _stamp(path: Path | None) -> tuple[Any, ...]:
    """Names, sizes and times of change of a file, or of all files in a folder."""
    if path is None:
        return ()
    every = sorted(path.rglob("*")) if path.is_dir() else [path]
    return tuple((str(each), stat.st_size, stat.st_mtime_ns) for each in every for stat in (each.stat(),))


@dataclass(frozen=True)
class Trial:
    """A user's own task with its data, to try networks with."""

    study: Study
    task: OwnTask
    data: OwnData

    def try_out(self, network: nn.Module) -> None:
        """Refuse what could not be trained or compared."""
        _try_out(self.study, self.task, self.data, network)

    def called(self) -> tuple[Callable[[nn.Module], nn.Module], tuple[Tensor, ...]]:
        """What makes the module that is fused, a network with its loss, and two examples for it."""
        from tiebreak.tasks.own_task import Losses

        train = self.data.splits["train"]
        return lambda network: Losses(self.task, network, tuple(train)), tuple(each[:2] for each in train.values())


def _try_out(study: Study, task: OwnTask, data: OwnData, network: nn.Module) -> None:
    """Call loss and metrics with a network and a few examples; refuse what could not be trained or compared."""
    import torch

    from tiebreak.models.draw_checks import without_draws
    from tiebreak.models.users_lines import error_line

    train = data.splits["train"]
    batch = {name: values[:TRIED].clone() for name, values in train.items()}
    versions = {name: values._version for name, values in batch.items()}
    task_file = f"{study.designs_from}: loss and metrics"
    network.eval()
    try:
        losses = task.losses(network, batch)
        if not losses.requires_grad:
            raise TiebreakError("the loss does not depend on what the network returns, so that nothing is trained")
        with torch.no_grad():
            found = without_draws(network, "the loss or the metrics", lambda: task.outcomes(network, batch))
            _check_batch(batch, versions)
            _check_rows(task, network, batch, found)
    except TiebreakError as error:
        text = str(error)
        raise TiebreakError(text if text.startswith(study.designs_from or "") else f"{task_file}: {text}") from None
    except Exception as error:  # they may raise anything
        raise TiebreakError(f"{task_file}: {error_line(error)}") from error
    given, wanted = set(found) - {"loss"}, set(study.metrics) - {"loss"}
    if given != wanted:
        raise TiebreakError(
            f"{study.designs_from}: metrics: returns {_names(given)}, but the study names {_names(wanted)} in its key"
            " `metrics`"
        )


def _check_batch(batch: Mapping[str, Tensor], versions: Mapping[str, int]) -> None:
    """They leave the batch as it is: in evaluation it is a part of the data itself."""
    if changed := next((name for name, values in batch.items() if values._version != versions[name]), ""):
        raise TiebreakError(f"they change batch[{changed!r}] in place; compute with a copy")


def _names(metrics: set[str]) -> str:
    return ", ".join(sorted(metrics)) or "none"


def _check_rows(task: OwnTask, network: nn.Module, batch: Mapping[str, Tensor], whole: Mapping[str, Tensor]) -> None:
    """The numbers of an example do not depend on the other examples of its batch: rows that fill a batch do not count,
    and evaluation has batches of its own."""
    import torch

    for row in range(len(next(iter(batch.values())))):
        alone = task.outcomes(network, {name: values[row : row + 1] for name, values in batch.items()})
        for name, values in whole.items():
            if not torch.allclose(values[row], alone[name][0], rtol=1e-3, atol=1e-5, equal_nan=True):
                raise TiebreakError(
                    f"{name} of an example depends on the other examples of its batch: return a number for each"
                    " example, made of that example alone (no mean over the batch)"
                )
