"""A user's design file: a Python file with a dict `DESIGNS`. Its names are read here without running the file.

The file is run by `catalog.find_design` when a network is built, with the rights of the user.
"""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

from tiebreak import files
from tiebreak.errors import TiebreakError

DESIGNS_FILE = "designs.py"  # its copy in a results folder
LIMIT_BYTES = 4 << 20  # of a file
EXAMPLE = 'DESIGNS = {"my-net": MyNet}'


def declared_names(path: Path) -> list[str]:
    """The keys of the dict literal `DESIGNS` in the file; the file is parsed, not run."""
    if not path.exists():
        raise TiebreakError(f"{path}: No such file or directory; designs_from should name a Python file")
    text = files.read_text(path, LIMIT_BYTES)
    try:
        tree = ast.parse(text)
    except (RecursionError, MemoryError):
        raise TiebreakError(f"{path}: not valid Python: nested too deeply") from None
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        what = error.msg if isinstance(error, SyntaxError) else error  # its text names a file "<unknown>"
        raise TiebreakError(f"{path}{f':{line}' if line else ''}: not valid Python: {what}") from None
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == "DESIGNS" for target in targets):
            return _keys(path, node.value)  # type: ignore[attr-defined]
    raise TiebreakError(f"{path}: no DESIGNS; end the file with a line such as `{EXAMPLE}`")


def _keys(path: Path, value: ast.expr | None) -> list[str]:
    keys = value.keys if isinstance(value, ast.Dict) else []
    names = [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    if not names or len(names) != len(keys):
        raise TiebreakError(f"{path}: DESIGNS should be a dict literal of names and classes, such as `{EXAMPLE}`")
    return names


def file_hash(path: Path) -> str:
    """A hash of the file's text: a stored plan is used again while it is the same."""
    return hashlib.sha256(files.read_text(path).encode()).hexdigest()[:20]


def designs_are_code(path: str) -> str:
    """What every command says before it runs a user's designs."""
    return f"running {path}: the designs it defines are code, with all your rights"
