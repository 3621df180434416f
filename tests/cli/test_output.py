"""Lines of the command line: one line each, no control character, and not too long."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tiebreak
from tiebreak.cli.output import print_error, print_json, print_line, usage_error

SOURCE = Path(tiebreak.__file__).parent
FREE = {  # lines of our own, escaped or constant; espeak_process and beside write to their parent
    "cli/output.py",
    "data/load_progress.py",
    "data/speech/espeak_process.py",
    "study/study_reference.py",
    "system.py",
    "watch/beside.py",
    "watch/web_server.py",
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text())
def test_a_line_is_one_line_without_control_characters(capsys: pytest.CaptureFixture[str], text: str) -> None:
    for show in (print_line, print_error):
        show(text)
        printed = capsys.readouterr()
        line = (printed.out or printed.err).removesuffix("\n")
        assert line.isprintable()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.dictionaries(st.text(), st.text(st.characters(exclude_categories=["Cs"]))), plain=st.booleans())
def test_json_stays_json(capsys: pytest.CaptureFixture[str], content: dict[str, str], plain: bool) -> None:
    print_json(json.dumps(content, ensure_ascii=plain, indent=1))
    printed = capsys.readouterr().out
    assert json.loads(printed) == content
    assert printed.replace("\n", "").isprintable()


def test_a_long_message_keeps_its_beginning_and_its_advice(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(f"file.toml: {'x' * 5000}; remove it")
    line = capsys.readouterr().err
    assert len(line) < 600
    assert line.startswith("tiebreak: file.toml: xxx")
    assert line.endswith("xxx; remove it\n")


def test_nothing_else_prints() -> None:
    found = []
    for path in SOURCE.rglob("*.py"):
        name, text = path.relative_to(SOURCE).as_posix(), path.read_text("utf-8")
        if name not in FREE and re.search(
            r"(?<![\w.])print\(|(?<!Safe)\bConsole\(", text.replace("class SafeConsole(Console):", "")
        ):
            found.append(name)
    assert not found


@pytest.mark.parametrize(
    ("message", "arguments", "expected"),
    [
        ("Invalid value for '--seeds': Input should be a valid integer, unable to parse", "--seeds x", "--seeds x: "),
        ("Invalid value for '--goal': Value error, 'up' is not one of 'max', 'min'.", "--goal=up", "one of max, min"),
        ("Invalid value for '--workers': Input should be greater than or equal to 1", "--workers 0", "at least 1"),
        (
            "Invalid value for '--margin': Input should be a valid number",
            "--margin x",
            "--margin x: should be a number",
        ),
        ("No such option: --seed", "--seed 3", "no such option: --seed"),
    ],
)
def test_a_wrong_option_is_told_with_its_value_and_what_is_allowed(message: str, arguments: str, expected: str) -> None:
    found = usage_error(message, arguments.split())
    assert expected in found
    assert "Input" not in found
    assert "error" not in found
