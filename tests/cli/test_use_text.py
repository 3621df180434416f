"""A trained language model continues a text, from a study that refuses what cannot be trained."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import tiny
from tiebreak import api
from tiebreak.cli.use import use
from tiebreak.drive.machine import Machine
from tiebreak.errors import TiebreakError
from tiebreak.study.schema import Study


def test_windows_that_are_too_long_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    content = tiny.language_content()
    content["arms"][1]["options"] = {"window": 4000}
    machine = Machine(data_dir=tiny.write_text(tmp_path))
    with pytest.raises(TiebreakError, match=r"4,000"):
        api.run(Study.model_validate(content), tmp_path / "out", machine=machine, listen=lambda message: None)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("here")
def test_a_trained_run_of_any_window_continues_a_text(tmp_path: Path) -> None:
    machine = Machine(workers=1, strategy="loop", data_dir=tiny.write_text(tmp_path))
    study = Study.model_validate(tiny.language_content(seeds=1))
    api.run(study, tmp_path / "out", machine=machine, listen=lambda message: None)
    for arm in ("one", "two"):
        used = use(tmp_path / "out", "a b", arm=arm, how={"n": 3, "words": 4})
        assert [answer.text.startswith("a b") for answer in used.reply.answers] == [True] * 3
    with pytest.raises(TiebreakError, match=r"--beam.*language.*--temperature"):
        use(tmp_path / "out", "a b", how={"beam": 3})
