"""Command templates of programs: a list of arguments with {placeholders}, run without a shell.

`{name}` stands for a value of the arm or of the grid, `{{` and `}}` for braces. Four names are always there:
`{arm}`, `{seed}`, `{out}` (the run's own folder) and `{python}` (the interpreter that runs Tiebreak).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tiebreak.study.registry import Scalar

RESERVED = ("arm", "seed", "out", "python")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def placeholders(argument: str) -> list[str]:
    """The names in one argument, in order; ValueError where braces do not match or hold no plain name.

    >>> placeholders("--data={root}/{{x}}-{seed}.npz")
    ['root', 'seed']
    """
    found = []
    for piece in _PIECE.finditer(argument):
        name = piece[1]
        if name is not None:
            if not NAME.fullmatch(name):
                raise ValueError(f"{piece[0]!r} is no placeholder: a plain name in braces; write {{{{ for a brace")
            found.append(name)
        elif piece[0] in "{}":
            raise ValueError(f"a single {piece[0]!r} in {argument!r}; write {piece[0] * 2} for a brace")
    return found


def names_in(command: Sequence[str]) -> list[str]:
    """All names of a command, each once."""
    return list(dict.fromkeys(name for argument in command for name in placeholders(argument)))


def fill(argument: str, values: Mapping[str, Scalar]) -> str:
    """The argument with its values.

    >>> fill("--lr={lr}", {"lr": 1e-05}), fill("{width}", {"width": 64}), fill("{{}}", {})
    ('--lr=1e-05', '64', '{}')
    """

    def replaced(piece: re.Match[str]) -> str:
        return value_text(values[piece[1]]) if piece[1] is not None else piece[0][0]

    return _PIECE.sub(replaced, argument)


def value_text(value: Scalar) -> str:
    """A value as an argument: numbers so that they are read back exactly, true and false as in TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)
