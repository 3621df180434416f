"""What depends on the machine: cores, memory, processes, what must reach the disk, Python's collector."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tiebreak.text import printable


def cores() -> int:
    """The number of CPU cores that this process may use."""
    process = psutil.Process()
    if hasattr(process, "cpu_affinity"):  # not on macOS
        return len(process.cpu_affinity() or ()) or 1
    return psutil.cpu_count() or 1


def free_memory() -> int:
    """Bytes of memory that can be used without swapping."""
    return int(psutil.virtual_memory().available)


def total_memory() -> int:
    """Bytes of memory that the machine has."""
    return int(psutil.virtual_memory().total)


def cpu_name() -> str:
    """The model of the CPU, as the system calls it."""
    listed = Path("/proc/cpuinfo")  # only Linux has it
    lines = listed.read_text("utf-8", "replace").splitlines() if listed.is_file() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return printable(named[0] if named else platform.processor() or platform.machine())


def python(module: str) -> list[str]:
    """The command that runs one of our modules. A file in the current folder cannot take the place of a library.

    `python -m` alone looks there first, and a folder of experiments may hold a `torch` or a `random.py`.
    """
    from_source = Path.cwd() == Path(__file__).resolve().parent.parent  # found there, and perhaps nowhere else
    return [sys.executable, *([] if from_source else ["-P"]), "-m", module]


def was_killed(code: int) -> bool:
    """Whether a process with this exit code was killed outright, as systems do that run out of memory."""
    return code == -getattr(signal, "SIGKILL", 0)  # Windows has no such signal


def end_group(leader: int, *, force: bool) -> bool:
    """Ask the process group of `leader` to end, or end it by force. False: there is no such group any more."""
    try:
        os.killpg(leader, signal.SIGKILL if force else signal.SIGTERM)
    except ProcessLookupError:
        return False
    except PermissionError:  # macOS says so where only zombies are left
        return False
    return True


def wait_without_reaping(process: int) -> None:
    """Wait until a child process has ended; its number stays taken where the system allows it (macOS: Python 3.13)."""
    if hasattr(os, "waitid"):
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)


def end_with_parent() -> None:
    """For a child process before it becomes another program: Linux kills it when the thread that made it ends.

    Other systems have nothing like it; there, the pipe to the supervisor has to be enough.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


def adopt_orphans() -> None:
    """On Linux, what our children start becomes our child when they end, also in another session; see end_children."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def end_children() -> None:
    """End all processes below this one by force, whatever group they are in."""
    while found := psutil.Process().children(recursive=True):
        for process in found:
            with suppress(psutil.Error):
                process.kill()
        if psutil.wait_procs(found, 1.0)[1]:
            return  # cannot be ended, such as a process of another user


def gpu_count() -> int:
    """How many NVIDIA GPUs the machine has, found without torch."""
    return len([path for path in Path("/dev").glob("nvidia[0-9]*") if path.name[6:].isdecimal()])


def sync_folder(folder: Path) -> None:
    """Make a rename in the folder survive a power cut, where folders can be opened at all (not on Windows)."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def open_in_browser(page: Path | str) -> None:
    """Show a file or an address in the user's browser; where there is none, such as on a server, print its path."""
    import webbrowser

    # without a screen, a text browser would take over the terminal
    screen = not sys.platform.startswith("linux") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
    try:
        opened = screen and webbrowser.open(page.resolve().as_uri() if isinstance(page, Path) else page)
    except webbrowser.Error:
        opened = False
    if not opened:
        print(printable(page.resolve() if isinstance(page, Path) else page))


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, which shows more than text."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


@contextmanager
def collector_paused() -> Iterator[None]:
    """No search for reference cycles for a while.

    Reading thousands of records allocates many objects, none of them in cycles; the searches took half of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
