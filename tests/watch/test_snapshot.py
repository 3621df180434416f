"""A snapshot: the keys that the page relies on, the same in every state, plain JSON, and small."""

from __future__ import annotations

import json
from pathlib import Path

from support import watched
from tiebreak.results.live_progress import LiveProgress, MachineLoad, write_live
from tiebreak.watch.snapshot import SUMMARY, snapshot_without_records
from tiebreak.watch.watched_folder import WatchedFolder

COMPARISON = {
    "label", "primary", "a", "b", "metric", "goal", "unit", "margin", "difference", "low", "high", "n", "outcome",
    "sentence", "path", "kind", "words",
}  # fmt: skip


def test_every_state_has_the_same_keys(tmp_path: Path) -> None:
    watched.make_folder(tmp_path / "out", ended=2, seeds=4)
    study = WatchedFolder(tmp_path / "out")
    study.refresh()
    empty = snapshot_without_records("id", "folder", "empty", "nothing here")
    assert study.snapshot.keys() == empty.keys() > set(SUMMARY)
    assert study.snapshot["progress"].keys() == empty["progress"].keys()
    assert study.snapshot["comparisons"][0].keys() == COMPARISON
    json.dumps(study.snapshot, allow_nan=False)


def test_what_a_running_study_says_of_itself_is_shown(tmp_path: Path) -> None:
    watched.make_folder(tmp_path / "out", ended=2, seeds=4)
    machine = MachineLoad(name="node7", cores=8, cores_used=6, gpus=1, jobs=3)
    here = LiveProgress.here(tmp_path / "out")
    write_live(tmp_path / "out", here.model_copy(update={"rate": 9.5, "doing": "training", "machines": (machine,)}))
    study = WatchedFolder(tmp_path / "out")
    study.refresh()
    assert (study.snapshot["state"], study.snapshot["final"]) == ("running", False)
    assert (study.snapshot["doing"], study.snapshot["progress"]["rate"]) == ("training", 9.5)
    assert study.snapshot["machines"] == [
        {"name": "node7", "cores": 8, "cores_used": 6, "gpus": 1, "jobs": 3, "alive": True}
    ]


def test_until_decided_nothing_is_said_before_the_first_look(tmp_path: Path) -> None:
    watched.make_folder(tmp_path / "out", ended=3, seeds=9, until_decided={"max_seeds": 60})
    study = WatchedFolder(tmp_path / "out")
    study.refresh()
    (item,) = study.snapshot["comparisons"]
    assert study.snapshot["until_decided"]
    assert (item["difference"], item["low"], item["n"], item["path"]) == (None, None, 0, [])
    assert study.snapshot["curves"]  # learning curves are no verdict
