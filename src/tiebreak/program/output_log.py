"""The output of one run, written to its log as it comes, and kept small: its beginning and its last part.

A program that prints gigabytes must not fill the disk, nor may it wait for ever because nobody reads what it prints.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

HEAD_BYTES = 4 << 20  # of the beginning, which stay
MOST_BYTES = 16 << 20  # of a run: what lies between the beginning and the last part is left out then
LAST_BYTES = 1 << 20
PIECE_BYTES = 1 << 16
END_SECONDS = 2.0  # for what is still in the pipe when the program has ended


class OutputLog:
    """Copies a pipe to the end of a file, in a thread of its own."""

    def __init__(self, pipe: IO[bytes], path: Path) -> None:
        self._pipe = pipe
        self._file = path.open("a+b", buffering=0)
        self._start = self._file.seek(0, 2)
        self._thread = threading.Thread(target=self._copy, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait for the last of the output: the program has ended."""
        self._thread.join(END_SECONDS)

    def _copy(self) -> None:
        size, left_out, lost = 0, 0, 0
        with self._file, suppress(OSError):  # at the end the disk may still be full
            while piece := self._pipe.read(PIECE_BYTES):
                try:
                    size += self._file.write(piece)
                    if size > MOST_BYTES:
                        left_out += size - HEAD_BYTES - LAST_BYTES
                        size = HEAD_BYTES + self._shorten(left_out)
                except OSError:  # such as a full disk: go on reading, or the program would wait for ever
                    lost += len(piece)
            if lost:
                self._file.write(f"\n[tiebreak] {lost} bytes of output could not be written\n".encode())

    def _shorten(self, left_out: int) -> int:
        """Keep the beginning and the last part; the size of the last part, with the line before it."""
        self._file.seek(-LAST_BYTES, 2)
        last = self._file.read(LAST_BYTES)
        self._file.truncate(self._start + HEAD_BYTES)
        line = f"\n[tiebreak] {left_out} bytes of output are left out here\n".encode()
        self._file.write(line)
        return len(line) + self._file.write(last)
