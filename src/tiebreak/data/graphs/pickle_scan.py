"""What a pickle would build, found out before anything is built: the kinds of its operations, their number, the depth.

The operations are followed on a stack that holds, instead of objects, how deeply each is nested. A small file can ask
for a great deal: objects are shared through the memo, so that a tuple of 300 bytes takes for ever to hash.
"""

from __future__ import annotations

import pickletools
from collections.abc import Collection

from tiebreak.errors import TiebreakError

LIMIT_OPERATIONS = 2_000_000  # of one file; the largest graphs of Planetoid have half as many
LIMIT_CALLS = 1_000  # of constructors; a sparse matrix needs a dozen
LIMIT_DEPTH = 50

PUTS = {"PUT", "BINPUT", "LONG_BINPUT"}
GETS = {"GET", "BINGET", "LONG_BINGET"}
ATOMS = {
    *("NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "GLOBAL"),
    *("BINSTRING", "SHORT_BINSTRING", "BINUNICODE", "BINBYTES", "SHORT_BINBYTES"),
}
EMPTY = {"EMPTY_TUPLE", "EMPTY_LIST", "EMPTY_DICT"}
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
CALLS = {"GLOBAL", "REDUCE", "NEWOBJ"}
OPERATIONS = {
    *(*PUTS, *GETS, *ATOMS, *EMPTY, *TUPLES, *CALLS),
    *("PROTO", "STOP", "MARK", "TUPLE", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "BUILD"),
}

_Item = list[int]  # its depth: 0 for numbers, text and names; a list, as containers grow while others hold them
_ATOM: _Item = [0]


def scan(where: str, content: bytes, names: Collection[str]) -> None:
    """Raise TiebreakError where the pickle names anything but `names`, or would build more than the limits allow."""
    machine, calls = _Machine(where), 0
    for count, (operation, argument, _) in enumerate(pickletools.genops(content), start=1):
        name = operation.name
        if name == "GLOBAL" and argument not in names:
            raise TiebreakError(
                f"{where}: names {'.'.join(str(argument).split())[:80]!r}; only numpy and scipy arrays are read from a "
                "pickle, and nothing in it was run: do not trust this file"
            )
        if name not in OPERATIONS:
            raise TiebreakError(f"{where}: uses the pickle operation {name}, which arrays do not need")
        if name in PUTS and int(str(argument)) > len(content):  # a table of that length would be made
            raise TiebreakError(f"{where}: claims more objects than it has bytes; get the file again")
        calls += name in CALLS
        if count > LIMIT_OPERATIONS or calls > LIMIT_CALLS:
            raise TiebreakError(f"{where}: builds more objects than an array or a graph has; do not trust this file")
        machine.follow(name, argument)


class _Machine:
    """The stack and the memo, with depths in the place of objects. IndexError or KeyError: the pickle is damaged."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._stack: list[_Item] = []
        self._marks: list[int] = []
        self._memo: dict[str, _Item] = {}

    def follow(self, name: str, argument: object) -> None:
        """Do one operation."""
        stack = self._stack
        if name in ATOMS:
            stack.append(_ATOM)
        elif name in EMPTY:
            stack.append([1])
        elif name in PUTS:
            self._memo[str(argument)] = stack[-1]
        elif name in GETS:
            stack.append(self._memo[str(argument)])
        elif name == "MARK":
            self._marks.append(len(stack))
        elif name == "TUPLE" or name in TUPLES:
            items = self._pop(TUPLES.get(name))
            stack.append([1])
            self._hold(items)
        elif name in ("APPEND", "BUILD"):
            self._hold(self._pop(1))
        elif name == "APPENDS":
            self._hold(self._pop(None))
        elif name in ("SETITEM", "SETITEMS"):
            items = self._pop(2 if name == "SETITEM" else None)
            if any(key is not _ATOM for key in items[::2]):
                raise TiebreakError(f"{self._where}: a key that is no number and no text; do not trust this file")
            self._hold(items)
        elif name in ("REDUCE", "NEWOBJ"):
            items = self._pop(2)
            stack.append([1])
            self._hold(items)

    def _pop(self, count: int | None) -> list[_Item]:
        """The topmost items; None: down to the last mark."""
        start = self._marks.pop() if count is None else len(self._stack) - count
        if start < (self._marks[-1] if self._marks else 0):
            raise IndexError("an empty stack")
        items = self._stack[start:]
        del self._stack[start:]
        return items

    def _hold(self, items: list[_Item]) -> None:
        """The topmost item now holds these."""
        top = self._stack[-1]
        depth = max((item[0] for item in items), default=0) + 1
        if depth > LIMIT_DEPTH:
            raise TiebreakError(f"{self._where}: nested more than {LIMIT_DEPTH} deep; do not trust this file")
        if top is not _ATOM:
            top[0] = max(top[0], depth)
