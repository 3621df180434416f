"""A console for text of any origin: nothing but our own styles can drive the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from tiebreak.text import printable


class SafeConsole(Console):
    """A console that escapes control characters in everything it prints."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is to be printed; control characters that are not rich's own are escaped."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable() or segment.text == "\n":
                yield segment
            else:
                yield Segment("\n".join(map(printable, segment.text.split("\n"))), segment.style)
