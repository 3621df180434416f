from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from support import hand_made, own_program
from support.cli_fixtures import Tiebreak
from tiebreak.plan.planner import make_plan
from tiebreak.results.store import Store
from tiebreak.study.schema import Study


def test_a_plan_says_how_many_of_its_runs_are_stored(tmp_path: Path, tiebreak: Tiebreak) -> None:
    path, out = own_program.write(tmp_path), tmp_path / "out"
    assert "stored already" not in tiebreak("plan", path, "--out", out).out
    first = next(iter(make_plan(Study.load(str(path)), None).runs))
    out.mkdir()
    with closing(Store.create(out)) as store, store.transaction():
        store.add_run(replace(hand_made.RUN, identity=first))
    done = tiebreak("plan", path, "--out", out)
    assert (done.code, "1 of 4 runs are stored already" in done.out) == (0, True)
