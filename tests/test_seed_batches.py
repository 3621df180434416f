"""A study that takes seeds until it is decided, trained for real on the karate club: stopped, killed, continued."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import own_program
from support.damage import graph_study
from support.small_study import loop_machine
from tiebreak import api
from tiebreak.drive.messages import EpochDone, Message, Note, TrainingStarted
from tiebreak.errors import TiebreakError
from tiebreak.outcome import count_look
from tiebreak.results.record import PROGRAM_RUNS
from tiebreak.study.schema import Study
from tiebreak.verdict.model import Verdict

CAP = 9


@pytest.fixture(name="study")
def _study(tmp_path: Path) -> Study:
    return graph_study(tmp_path / "designs.py", margin=0.0001).growing(until_decided=True, max_seeds=CAP)


def seeds_of(folder: Path) -> list[tuple[int, int]]:
    return [(look.seeds, look.end) for look in api.open_result(folder).records.looks]


@pytest.mark.usefixtures("here")
def test_killed_in_the_second_batch_it_continues_with_the_same_looks(study: Study, tmp_path: Path) -> None:
    starts = 0

    def kill_in_batch_two(message: Message) -> None:
        nonlocal starts
        starts += isinstance(message, TrainingStarted)
        if starts == 2 and isinstance(message, EpochDone):
            raise KeyboardInterrupt

    out, whole = tmp_path / "out", tmp_path / "whole"
    with pytest.raises(KeyboardInterrupt):
        api.run(study, out, machine=loop_machine(), listen=kill_in_batch_two)
    assert seeds_of(out) == [(6, CAP)]
    assert "Not final" in api.open_result(out).verdict.answer
    heard: list[Message] = []
    continued = api.run(study, out, machine=loop_machine(), listen=heard.append).verdict
    assert (
        sum(isinstance(message, TrainingStarted) and bool(message.runs) for message in heard) == 1
    )  # what was left of the second batch
    assert any(isinstance(message, Note) and "look at 9" in message.text for message in heard)
    assert seeds_of(out) == [(6, CAP), (9, CAP)]
    never_killed = api.run(study, whole, machine=loop_machine(), listen=heard.append).verdict
    assert (continued.comparisons, continued.stopping) == (never_killed.comparisons, never_killed.stopping)

    (out / "verdict.json").unlink()  # it takes no look with it
    extended = api.run(study.changed(seeds=12), out, machine=loop_machine(), listen=heard.append).verdict
    assert seeds_of(out) == [(6, CAP), (9, CAP), (12, CAP)]
    assert [look.seeds for look in extended.primary.path] == [6, 9, 12]
    count_look(out)  # the same look again
    assert len(seeds_of(out)) == 3
    assert api.check(out).problems == []


def test_bad_input_is_one_line_before_a_folder_is_made(study: Study, tmp_path: Path) -> None:
    small = study.growing(until_decided=True, max_seeds=5)
    with pytest.raises(TiebreakError, match="max_seeds = 5"):
        api.run(small, tmp_path / "out", machine=loop_machine(), listen=lambda message: None)
    assert not (tmp_path / "out").exists()
    with pytest.raises(TiebreakError, match="until_decided"):
        study.changed(seeds=4).growing(until_decided=False, max_seeds=9)


@pytest.mark.usefixtures("here")
def test_changed_code_starts_with_the_first_batch_and_the_same_looks(study: Study, tmp_path: Path) -> None:
    """Its runs are trained again: the looks still count, and where fewer seeds decide now, no more are trained."""
    out, heard = tmp_path / "out", list[Message]()
    before = api.run(study, out, machine=loop_machine(), listen=heard.append).verdict
    assert (seeds_of(out), before.seeds) == ([(6, CAP), (9, CAP)], CAP)
    designs = tmp_path / "designs.py"
    designs.write_text(designs.read_text().replace("hidden=4)", "hidden=4)\n        self.more = 1"))
    heard.clear()
    after = api.run(study, out, machine=loop_machine(), listen=heard.append).verdict
    notes = [message.text for message in heard if isinstance(message, Note)]
    assert any("looks at 6 and 9 seeds still count" in line for line in notes)
    started = [message.runs for message in heard if isinstance(message, TrainingStarted) and message.runs]
    assert [len(runs) for runs in started] == [6, 3]  # of the design that changed
    assert seeds_of(out) == [(6, CAP), (9, CAP)]
    assert after.primary.path == before.primary.path  # the change was none of the numbers
    assert api.check(out).problems == []


def test_what_failed_is_tried_once_by_a_command(tmp_path: Path) -> None:
    """Not again at each look: that would take hours where a run is long."""
    program, arms = {"command": [*own_program.COMMAND, "crash"]}, [("high", 0.502), ("low", 0.5)]
    named = [{"name": name, "with": {"good": good}} for name, good in arms]
    path = own_program.write(tmp_path, program=program, arms=named, margin=0.0001)
    study = Study.load(str(path)).growing(until_decided=True, max_seeds=CAP)
    for command in (1, 2):
        api.run(study, tmp_path / "out", listen=lambda message: None, allow_program=True)
        assert seeds_of(tmp_path / "out") == [(6, CAP), (9, CAP)]
        starts = [int(file.read_text()) for file in (tmp_path / "out" / PROGRAM_RUNS).glob("*/starts")]
        assert sorted(starts) == [1] * 16 + [command] * 2


def test_the_same_command_again_gives_the_answer_of_changed_code_again(tmp_path: Path) -> None:
    """An earlier look at more seeds was one at other code: it counts, and nothing is trained to repeat it."""
    named = [{"name": name, "with": {"good": good}} for name, good in (("high", 0.5002), ("low", 0.5))]
    path = own_program.write(tmp_path, arms=named, margin=0.0001)
    fixed, code = Study.load(str(path)).changed(seeds=CAP), tmp_path / "toy.py"
    study = Study.load(str(path)).growing(until_decided=True, max_seeds=CAP)

    def run(study: Study = study) -> Verdict:
        return api.run(study, tmp_path / "out", listen=lambda message: None, allow_program=True).verdict

    assert run(fixed).seeds == CAP
    code.write_text(code.read_text().replace("starts = out", "good += 0.3 * (good > 0.5001)\nstarts = out", 1))
    decided = run()
    assert (decided.seeds, decided.comparisons[0].verdict) == (6, "a")
    assert run() == decided


def test_an_added_arm_gets_as_many_seeds_as_the_others_have_and_no_look_is_spent(tmp_path: Path) -> None:
    heard = list[Message]()

    def run(*names: str) -> Verdict:
        named = [{"name": name, "with": {"good": {"high": 0.502, "low": 0.5, "top": 0.9}[name]}} for name in names]
        study = Study.load(str(own_program.write(tmp_path, arms=named, margin=0.0001)))
        growing = study.growing(until_decided=True, max_seeds=CAP)
        return api.run(growing, tmp_path / "out", listen=heard.append, allow_program=True).verdict

    assert run("high", "low").seeds == CAP
    before = seeds_of(tmp_path / "out")
    heard.clear()
    found = run("high", "low", "top")
    assert found.seeds == CAP
    started = [message.runs for message in heard if isinstance(message, TrainingStarted) and message.runs]
    assert [len(runs) for runs in started] == [CAP], "not first those of the first batch"
    assert [look.seeds for look in found.primary.path] == [6, CAP]
    assert set(seeds_of(tmp_path / "out")) == set(before)
    assert not found.warnings
    assert run("high", "low", "top") == found


def test_further_comparisons_that_need_more_seeds_get_a_step_of_the_schedule_and_a_lower_cap_keeps_all_seeds(
    tmp_path: Path,
) -> None:
    """A look at one seed more than the last would spend as much error as one at half as many again."""

    def run(*names: str, most: int = 14) -> Verdict:
        named = [{"name": name, "with": {"good": {"high": 0.9, "low": 0.5, "top": 0.95}[name]}} for name in names]
        pairs = [{"a": a, "b": b, "primary": (a, b) == ("high", "low")} for a in names for b in names if a < b]
        study = Study.load(str(own_program.write(tmp_path, arms=named, margin=0.0001, comparisons=pairs)))
        growing = study.growing(until_decided=True, max_seeds=most)
        return api.run(growing, tmp_path / "out", listen=lambda message: None, allow_program=True).verdict

    assert run("high", "low").seeds == 6
    found = run("high", "low", "top")
    assert (found.seeds, [look.seeds for look in found.primary.path]) == (9, [6, 9]), "not 7"
    named = run("high", "low", "top", most=8)
    assert named.seeds == 9
    assert "at most 8 were asked for" in named.answer
