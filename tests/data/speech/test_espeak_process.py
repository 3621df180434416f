"""The process that speaks: bytes in, bytes out."""

from __future__ import annotations

import json
import struct
import subprocess
from typing import Any

import pytest

from tiebreak.system import python

pytest.importorskip("espeakng_loader")
MODULE = "tiebreak.data.speech.espeak_process"


def speak(jobs: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(python(MODULE), input=json.dumps(jobs).encode(), capture_output=True, check=False)


def sounds(output: bytes) -> list[bytes]:
    found = []
    while output:
        (count,) = struct.unpack("<I", output[:4])
        found.append(output[4 : 4 + 2 * count])
        assert len(found[-1]) == 2 * count
        output = output[4 + 2 * count :]
    return found


def test_each_text_gets_its_samples_and_the_same_every_time() -> None:
    jobs = [("one", "en-us", 175, 50), ("", "en-us", 175, 50), ("two", "en-us+m1", 300, 20)]
    first, again = speak(jobs), speak(jobs)
    assert (first.returncode, first.stderr) == (0, b"")
    assert first.stdout == again.stdout
    one, nothing, two = sounds(first.stdout)
    assert len(one) > len(two) > 1000
    assert not any(nothing)


def test_nothing_to_say_is_no_output() -> None:
    assert speak([]).stdout == b""


@pytest.mark.parametrize("voice", ["xx", "en-us+nobody", "xx+m1"])
def test_a_voice_that_does_not_exist_is_one_line_and_code_2(voice: str) -> None:
    done = speak([("one", voice, 175, 50)])
    assert done.returncode == 2
    assert voice in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
