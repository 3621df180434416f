"""From a table of runs to scores by data set, arm and seed: which column is which, and what cannot be used."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tiebreak.errors import TiebreakError, nearest
from tiebreak.exchange.run_names import compile_pattern, parse_name
from tiebreak.exchange.run_table import Cell, Row, Table
from tiebreak.text import encodable, printable
from tiebreak.verdict.scores import Seed
from tiebreak.verdict.statistics import usable

USUAL = {"arm": "arm", "seed": "seed", "score": "score", "dataset": "dataset"}
SEEDS = re.compile(r"seed|replicate|random_?state", re.I)  # a column that looks like the seeds is never passed over
LEAST_COUNTED = 5  # lines that are numbered one by one: fewer may be scores
WHOLE = re.compile(r"-?[0-9]{1,18}").fullmatch
Read = Callable[[Sequence[Cell]], str]


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns that the user named; None: the usual name."""

    arm: str | None = None
    seed: str | None = None
    score: str | None = None
    dataset: str | None = None
    run_name: str | None = None  # a pattern such as {arm}-seed{seed}


@dataclass(frozen=True, kw_only=True)
class ScoreTable:
    """Scores by data set (one, called "", where the table names none), arm and seed, in the order of the table."""

    sets: dict[str, dict[str, dict[Seed, float]]]
    score: str  # what was compared, as its column is called
    seeded: bool  # whether the table says which seed a run has
    notes: list[str] = field(default_factory=list)


def pick(table: Table, columns: Columns) -> ScoreTable:
    """The scores of a table: long, a row for each run, or wide, a column for each arm."""
    table = replace(table, columns=[encodable(name) for name in table.columns])
    wide = _wide_columns(table, columns)
    found = _pick_wide(table, columns, wide) if wide else _pick_long(table, columns)
    if not found.sets:
        raise TiebreakError(f"{printable(table.where)}: no scores; a row for each arm and seed is needed")
    arms = dict.fromkeys(arm for scores in found.sets.values() for arm in scores)
    if len(arms) == 1:
        raise TiebreakError(f"{printable(table.where)}: only one arm, {next(iter(arms))!r}; a comparison takes two")
    return found


def _pick_long(table: Table, columns: Columns) -> ScoreTable:
    score = _position(table, "score", columns.score, _score_default(table))
    by_name = compile_pattern(columns.run_name) if columns.run_name is not None else None
    arm, seed = (_reader(table, role, getattr(columns, role), by_name) for role in ("arm", "seed"))
    if arm is None:
        raise _no_column(table, "arm", columns)
    dataset = _optional(table, "dataset", columns.dataset)
    found: dict[str, dict[str, dict[Seed, float]]] = {}
    for number, (place, cells) in enumerate(table.rows):
        own = arm(cells)
        which = str(number) if seed is None else seed(cells)
        if not own or not which:
            raise TiebreakError(_lacking(table, (place, cells), "seed" if own else "arm", by_name is not None))
        name = "" if dataset is None else _text(cells[dataset])
        if dataset is not None and not name:
            raise TiebreakError(f"{table.at(place)}: no {table.columns[dataset]}; fill it in, or remove the row")
        scores = found.setdefault(name, {}).setdefault(own, {})
        key = _seed(which)
        if key in scores:
            on = f" on {name!r}" if name else ""
            raise TiebreakError(
                f"{table.at(place)}: arm {own!r} has a second score for seed {key}{on}; keep one of them"
            )
        scores[key] = _number(table, place, cells[score], "score")
    return ScoreTable(sets=found, score=table.columns[score], seeded=seed is not None, notes=table.notes)


def _pick_wide(table: Table, columns: Columns, arms: Sequence[int]) -> ScoreTable:
    seed, dataset = (_optional(table, role, getattr(columns, role)) for role in ("seed", "dataset"))
    _refuse_hidden_seed(table, seed)
    found: dict[str, dict[str, dict[Seed, float]]] = {}
    for number, (place, cells) in enumerate(table.rows):
        which = str(number) if seed is None else _text(cells[seed])
        name = "" if dataset is None else _text(cells[dataset])
        if not which or (dataset is not None and not name):
            raise TiebreakError(
                f"{table.at(place)}: no {'data set' if which else 'seed'}; fill it in, or remove the row"
            )
        key, scores = _seed(which), found.setdefault(name, {})
        for position in arms:
            if _text(cells[position]):  # an empty cell is a run that does not exist
                own = scores.setdefault(table.columns[position], {})
                if key in own:
                    raise TiebreakError(f"{table.at(place)}: a second line for seed {key}; keep one of them")
                own[key] = _number(table, place, cells[position], table.columns[position], wide=columns.score is None)
    if columns.score is None:
        _refuse_counter(table, found)
    return ScoreTable(sets=found, score="score", seeded=seed is not None, notes=table.notes)


def _refuse_counter(table: Table, found: Mapping[str, Mapping[str, Mapping[Seed, float]]]) -> None:
    """A column that counts the lines is no arm: the seeds, or an index."""
    for scores in found.values():
        for arm, own in scores.items():
            values = list(own.values())
            counted = values[0] in (0, 1) and values == [values[0] + step for step in range(len(values))]
            if counted and len(values) >= LEAST_COUNTED:
                raise TiebreakError(
                    f"{printable(table.where)}: the column {arm!r} counts the lines, so it holds no scores; "
                    f"if it holds the seeds, give --seed {arm}, else name the arms: --score COLUMN,COLUMN"
                )


def _wide_columns(table: Table, columns: Columns) -> list[int]:
    """The columns of a wide table, one for each arm; none of a long one. `--score a,b` names them."""
    if columns.arm is not None or table.named or table.defaults or columns.run_name is not None:
        return []
    if columns.score is not None:
        named = [name.strip() for name in columns.score.split(",")]
        if _find(table.columns, columns.score) is not None or len(named) < 2:
            return []
        return [_position(table, "score", name, "") for name in named]
    if any(_find(table.columns, USUAL[role]) is not None for role in ("arm", "score")):
        return []
    other = {_find(table.columns, getattr(columns, role) or USUAL[role]) for role in ("seed", "dataset")}
    arms = [place for place, name in enumerate(table.columns) if place not in other and name]
    return arms if len(arms) > 1 else []


def _score_default(table: Table) -> str:
    return table.defaults.get("score") or (table.metrics[0] if len(table.metrics) == 1 else USUAL["score"])


def _reader(table: Table, role: str, named: str | None, pattern: re.Pattern[str] | None) -> Read | None:
    """How the arm or the seed of a row is found: in a column, in several joined, or in the name of the run."""
    if named is not None:
        places = [_find(table.columns, named)]
        if places == [None] and "," in named and role == "arm":
            places = [_find(table.columns, part.strip()) for part in named.split(",")]
        if None in places:
            raise _unknown(table, role, named)
        known = [place for place in places if place is not None]
        return lambda cells: ", ".join(_text(cells[place]) for place in known)
    place = _find(table.columns, table.defaults.get(role, USUAL[role]))
    runs = _find(table.columns, table.named) if table.named else None
    in_pattern = pattern is not None and role in pattern.groupindex
    if place is not None and not in_pattern:
        return lambda cells: _text(cells[place])
    if runs is None and pattern is not None:
        raise TiebreakError(f"--run-name: {printable(table.where)} has no names of runs")
    if runs is not None and (pattern is None or in_pattern):
        return lambda cells: parse_name(_text(cells[runs]), pattern).get(role, "")
    if role == "seed":
        _refuse_hidden_seed(table, None)
    return None


def _refuse_hidden_seed(table: Table, found: int | None) -> None:
    like = [name for name in table.columns if SEEDS.search(name)]
    if found is None and like:
        raise TiebreakError(
            f"{printable(table.where)}: no column 'seed'; if {like[0]!r} holds the seeds, give --seed {like[0]}"
        )


def _optional(table: Table, role: str, named: str | None) -> int | None:
    if named is not None:
        return _position(table, role, named, "")
    return _find(table.columns, table.defaults.get(role, USUAL[role]))


def _position(table: Table, role: str, named: str | None, usual: str) -> int:
    name = named or usual
    place = _find(table.columns, name)
    if place is None:
        raise _unknown(table, role, name)
    many = sum(own.lower() == table.columns[place].lower() for own in table.columns)
    if many > 1 and table.columns.count(name) != 1:
        raise TiebreakError(f"{table.at(1)}: {many} columns are called {name!r}; rename all but one")
    return place


def _find(columns: Sequence[str], name: str) -> int | None:
    if name in columns:
        return list(columns).index(name)
    lower = [own.lower() for own in columns]
    return lower.index(name.lower()) if name.lower() in lower else None


def _unknown(table: Table, role: str, name: str) -> TiebreakError:
    others = table.metrics if role == "score" and table.metrics else [own for own in table.columns if own]
    hint = nearest(name, [own for own in others if own.lower() not in USUAL.values()])
    where = printable(table.where) if table.named else table.at(1)
    return TiebreakError(f"{where}: no column {name!r}; name the {role} with --{role} ({hint})")


def _no_column(table: Table, role: str, columns: Columns) -> TiebreakError:
    return _unknown(table, role, getattr(columns, role) or USUAL[role])


def _lacking(table: Table, row: Row, role: str, patterned: bool) -> str:
    place, cells = row
    runs = _find(table.columns, table.named) if table.named else None
    if runs is not None:
        hint = "change --run-name, or give" if patterned else "give --run-name, such as '{arm}-seed{seed}', or"
        return f"{table.at(place)}: no {role} in the name {_text(cells[runs])!r}; {hint} --{role} PARAMETER"
    return f"{table.at(place)}: no {role}; fill it in, or remove the line"


def _text(cell: Cell) -> str:
    if isinstance(cell, str):  # first: a CSV may have millions of cells
        return cell.strip() if cell.isascii() else encodable(cell.strip())
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))  # a column of whole numbers with gaps is read as floats
    return "" if cell is None else str(cell)


def _seed(text: str) -> Seed:
    return int(text) if WHOLE(text) else text


def _number(table: Table, place: int | str, cell: Cell, what: str, *, wide: bool = False) -> float:
    try:
        number = float("" if cell is None or isinstance(cell, bool) else cell)
    except (ValueError, OverflowError):
        if wide:
            raise TiebreakError(
                f"{table.at(place)}: no column 'arm', and {what!r} holds {_text(cell)!r}, so it is no column of scores "
                "either; name the columns with --arm, --seed and --score"
            ) from None
        shown = f"{what} {_text(cell)!r}"
        raise TiebreakError(f"{table.at(place)}: the {shown} is not a number; write it like 0.93") from None
    if not usable(number):
        raise TiebreakError(
            f"{table.at(place)}: the {what} {_text(cell)!r} cannot be compared; remove the line of a run that failed"
        )
    return number
