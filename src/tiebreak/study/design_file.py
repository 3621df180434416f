"""A user's own designs: a Python file that exports `DESIGNS`. Its names are read here without running it.

The file is code. It runs when its designs are built, in `catalog.find_design`, with the rights of the user.
"""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

from tiebreak import files
from tiebreak.errors import TiebreakError

EXAMPLE = 'DESIGNS = {"my-net": MyNet}'


def declared_names(path: Path) -> list[str]:
    """The names in the file's `DESIGNS`, a dict literal; the file is read, not run."""
    if not path.exists():
        raise TiebreakError(f"{path}: No such file or directory; designs_from names a Python file")
    text = files.read_text(path)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise TiebreakError(f"{path}{f':{line}' if line else ''}: not valid Python: {error}") from None
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == "DESIGNS" for target in targets):
            return _keys(path, node.value)  # type: ignore[attr-defined]
    raise TiebreakError(f"{path}: no DESIGNS; end the file with `{EXAMPLE}`")


def _keys(path: Path, value: ast.expr | None) -> list[str]:
    keys = value.keys if isinstance(value, ast.Dict) else []
    names = [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    if not names or len(names) != len(keys):
        raise TiebreakError(f"{path}: DESIGNS should be written out as names and classes: `{EXAMPLE}`")
    return names


def file_hash(path: Path) -> str:
    """What identifies the file's designs: a hash of its text."""
    return hashlib.sha256(files.read_text(path).encode()).hexdigest()[:20]
