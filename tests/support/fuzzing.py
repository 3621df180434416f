"""Good files with a few edits, for parsers: each must return, or raise a TiebreakError of one line, within memory.

FUZZ is how many inputs each test makes (`make torture`: 100,000), FUZZ_SECONDS how long it may take.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import psutil
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from support.torture_log import count, skip_when_late
from tiebreak.errors import TiebreakError

MEMORY = 3 << 30  # beyond what the process has
EXAMPLES = int(os.environ.get("FUZZ", "25"))
SECONDS = float(os.environ.get("FUZZ_SECONDS", "inf"))

Edits = Sequence[tuple[int, int, bytes]]  # where, how many bytes go, what comes instead

SPECIAL = [
    *(b"\0", b"\xff", b"\n", b"\r", b"\t", b",", b'"', b"'", b"{", b"}", b"[", b"]", b"-", b"0", b"1e999", b"NaN"),
    *(b"-1", b"\xff" * 4, b"\x7f\xff\xff\xff", b"9" * 30, b"9" * 5000, b"\xef\xbb\xbf", b"\xc3", b"\x1b[2J", b"null"),
    *(b"true", b"../", b"/", b"[" * 2000, b"(" * 300, b"a=" * 500, b"\xed\xa0\x80", "٣".encode(), "\u2028".encode()),
]
edits = st.lists(
    st.tuples(
        st.integers(0, 1 << 20),
        st.integers(0, 8) | st.integers(0, 4000),
        st.sampled_from(SPECIAL) | st.binary(max_size=8),
    ),
    min_size=1,
    max_size=4,
)
fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


def edited(content: bytes, changes: Edits) -> bytes:
    for place, gone, new in changes:
        at = place % (len(content) + 1)
        content = content[:at] + new + content[at + gone :]
    return content


@contextmanager
def limited_memory() -> Iterator[None]:
    """An allocation because of a claim in a file fails as a MemoryError, which no parser may raise."""
    if sys.platform != "linux":  # macOS has no such limit
        yield
        return
    used = psutil.Process().memory_info().vms
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


_checked: Counter[str] = Counter()
_begun: dict[str, float] = {}
STEP = 100  # inputs between two lines of the log


def check(read: Callable[[], object]) -> None:
    """Call a parser, which may raise a TiebreakError of one line and nothing else."""
    test = os.environ["PYTEST_CURRENT_TEST"].partition("::")[2].partition(" (")[0]
    skip_when_late()
    if time.monotonic() - _begun.setdefault(test, time.monotonic()) > SECONDS:
        pytest.skip("FUZZ_SECONDS are over")
    problem = ""
    try:
        read()
    except TiebreakError as error:
        problem = str(error)
    assert "\n" not in problem
    _checked[test] += 1
    if _checked[test] % STEP == 0:
        count("inputs of parsers", STEP, test=test)
