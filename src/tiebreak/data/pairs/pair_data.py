"""Translation data: pairs of sentences (source, target), checked, split into train, val and test, as characters.

| data set        | files                                  | splits: train / val / test             | from, to         |
|-----------------|----------------------------------------|----------------------------------------|------------------|
| tatoeba-spa-eng | {train,val,test}-eng-spa.txt           | 10,483 / 1,000 / 1,000, as published   | Spanish, English |
| tatoeba-full    | spa_full_118964.txt.gz                 | 80/10/10 of what is short              | Spanish, English |
| number-words    | none, see number_pairs.py              | 4,000 / 500 / 500                      | English, Spanish |
| a path          | FILE.tsv or FILE.txt                   | 80/10/10                               | source, target   |
| a path          | FOLDER/{train,val,test}.tsv            | as given                               | source, target   |

Tatoeba's lines are English TAB Spanish, a user's own are source TAB target; further columns are ignored.
Addresses, sha256 and licences: `sources.SOURCES`.

What is done to the text: tatoeba-spa-eng is read as its makers normalised it, with the space that they left where a
sentence began with ¿ or ¡; tatoeba-full and number-words go through `normalise`; a user's own only through `tidy`,
since dropping accents and all but a to z would ruin other languages. Pairs with an empty side are dropped, and before a
random split also repeated pairs, which would be in training and test at once. `notes` says how many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tiebreak.data.checksums import file_checksum
from tiebreak.data.fetch import Checked, find_source, joint_checksum, verify
from tiebreak.data.left_out import left_out
from tiebreak.data.pairs.characters import normalise, symbols, tidy, unknown
from tiebreak.data.pairs.number_pairs import number_checksum, number_pairs
from tiebreak.data.pairs.pair_files import FORM, Pair, read_pairs
from tiebreak.data.sources import Source
from tiebreak.data.splits import SPLITS, split_tenths
from tiebreak.data.user_paths import check_file, find_user_path
from tiebreak.errors import TiebreakError, nearest
from tiebreak.streams import stream
from tiebreak.study.registry import is_path
from tiebreak.text import number_of, printable

LANGUAGES: Mapping[str, tuple[str, str]] = {
    "tatoeba-spa-eng": ("Spanish", "English"),
    "tatoeba-full": ("Spanish", "English"),
    "number-words": ("English", "Spanish"),
}
SHORT = 20  # both sentences of a pair of tatoeba-full have fewer characters
PUBLISHED_COLUMNS = 3  # of Tatoeba: a number or the source of the sentences follows the pair
SUFFIXES = (".tsv", ".txt")
OWN = "your own pairs are a path with a slash to a .tsv or .txt file or to a folder, such as ./pairs.tsv"
RANDOM = "80/10/10 at random, the same for everyone"

Pairs = tuple[Pair, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class PairData:
    """A translation data set. `official` None: no checksum is published to compare its `checksum` with."""

    name: str
    pairs: Mapping[str, Pairs]  # by split: (source, target)
    source_symbols: tuple[str, ...]  # the characters of the training sources, sorted
    target_symbols: tuple[str, ...]
    languages: tuple[str, str]
    checksum: str  # sha256 of its file; of a list, where there are several
    official: bool | None
    licence: str
    citation: str
    split_rule: str = "as published"  # where the splits come from, in words
    notes: tuple[str, ...] = ()  # what was dropped, what the splits share

    @property
    def sizes(self) -> dict[str, int]:
        """The number of pairs of each split."""
        return {split: len(self.pairs[split]) for split in SPLITS}

    @property
    def longest(self) -> tuple[int, int]:
        """The characters of the longest source and of the longest target, over all splits."""
        pairs = [pair for split in SPLITS for pair in self.pairs[split]]
        return max(len(source) for source, _ in pairs), max(len(target) for _, target in pairs)

    def description(self) -> list[str]:
        """What the data set holds, in lines: languages, sizes, symbols, splits and notes."""
        name = printable(self.name)
        sizes = ", ".join(f"{size:,} {split}" for split, size in self.sizes.items())
        longest_source, longest_target = self.longest
        return [
            f"{name}: {self.languages[0]} to {self.languages[1]}, {sizes}; {len(self.source_symbols)} and "
            f"{len(self.target_symbols)} symbols, at most {longest_source} and {longest_target} characters",
            f"{name}: split {self.split_rule}; sha256 {self.checksum}",
            *(f"  {note}" for note in self.notes),
        ]


def load(name: str, data_dir: Path | None = None) -> PairData:
    """The translation data set called `name`, or the user's own at the path `name`, checked and split."""
    if is_path(name):
        return _load_own(name, find_user_path(name, data_dir))
    _check_name(name)
    source = find_source(name)
    if name == "number-words":
        return _pair_data(source, number_pairs(), number_checksum(), None, "a fixed random choice of numbers", [])
    files = verify(name, data_dir)
    paths = {filename: file.path for filename, file in files.items()}
    rule, notes = "as published", list[str]()
    if name == "tatoeba-full":
        (path,) = paths.values()
        pairs = _swapped(_read(path, normalise, notes, PUBLISHED_COLUMNS))
        short = [pair for pair in pairs if max(map(len, pair)) < SHORT]
        _note(notes, len(pairs) - len(short), "pair", f"dropped: a sentence of {SHORT} characters or more")
        splits, rule = _split(path, short, stream(0, "split", name), notes), RANDOM
    else:
        splits = {
            split: _swapped(_read(paths[f"{split}-eng-spa.txt"], str, notes, PUBLISHED_COLUMNS)) for split in SPLITS
        }
    official = all(file.official for file in files.values())
    return _pair_data(source, splits, joint_checksum(files), official, rule, notes)


def checksum(name: str, data_dir: Path | None = None) -> str:
    """The checksum that `load` would give, found without reading a sentence."""
    if is_path(name):
        return _own_checksum(find_user_path(name, data_dir))
    _check_name(name)
    return number_checksum() if name == "number-words" else joint_checksum(verify(name, data_dir))


def _check_name(name: str) -> None:
    if name not in LANGUAGES:
        raise TiebreakError(f"no translation data set is called {name!r}; {nearest(name, LANGUAGES)} ({OWN})")


def _load_own(name: str, path: Path) -> PairData:
    notes: list[str] = []
    own = Source(name=name, licence="", citation="")
    if path.is_dir():
        splits: Mapping[str, Pairs] = {
            split: tuple(_read(file, tidy, notes)) for split, file in _own_files(path).items()
        }
        notes += left_out(path, set(_own_files(path).values()))
        return _pair_data(own, splits, _own_checksum(path), None, "as in the files train, val and test", notes)
    if path.suffix.lower() not in SUFFIXES:
        raise TiebreakError(f"{printable(path)}: not a .tsv or .txt file; {OWN}; {FORM}")
    splits = _split(path, _read(path, tidy, notes), stream(0, "split", "pairs"), notes)
    return _pair_data(own, splits, file_checksum(path), None, RANDOM, notes)


def _own_files(folder: Path) -> dict[str, Path]:
    files = {split: folder / f"{split}.tsv" for split in SPLITS}
    for path in files.values():
        check_file(path, "a folder of pairs has the files train.tsv, val.tsv and test.tsv")
    return files


def _own_checksum(path: Path) -> str:
    if not path.is_dir():
        return file_checksum(path)
    files = _own_files(path).values()
    return joint_checksum({file.name: Checked(path=file, sha256=file_checksum(file), official=False) for file in files})


def _read(path: Path, form: Callable[[str], str], notes: list[str], columns: int = 2) -> list[Pair]:
    """The pairs of a file in the given form, without those that have an empty side."""
    lines = read_pairs(path, columns=columns)
    pairs = [(form(first), form(second)) for first, second in lines.pairs]
    kept = [pair for pair in pairs if pair[0].strip() and pair[1].strip()]
    where = printable(path.name)
    _note(notes, lines.blank, "blank line", f"skipped in {where}")
    _note(notes, lines.longer, "line", f"of {where} with further columns, which are left out")
    _note(notes, len(pairs) - len(kept), "pair", f"dropped in {where}: an empty source or target")
    if not kept:
        raise TiebreakError(f"{printable(path)}: every pair has an empty source or target; {FORM}")
    return kept


def _swapped(pairs: Iterable[Pair]) -> Pairs:
    return tuple((second, first) for first, second in pairs)


def _split(path: Path, pairs: Sequence[Pair], key: int, notes: list[str]) -> dict[str, Pairs]:
    """A tenth of the distinct pairs for validation and a tenth for testing, each split in the order of the file."""
    once = list(dict.fromkeys(pairs))
    _note(notes, len(pairs) - len(once), "repeated pair", "dropped")
    return split_tenths(once, key, f"{printable(path)}: different pairs")


def _note(notes: list[str], count: int, noun: str, what: str) -> None:
    if count:
        notes.append(f"{number_of(count, noun)} {what}")


def _pair_data(
    source: Source,
    pairs: Mapping[str, Pairs],
    checksum: str,
    official: bool | None,
    split_rule: str,
    notes: list[str],
) -> PairData:
    source_symbols, target_symbols = (symbols(texts) for texts in zip(*pairs["train"], strict=True))
    held_out = [pair for split in ("val", "test") for pair in pairs[split]]
    sources, targets = zip(*held_out, strict=True)
    strange = unknown(sources, source_symbols) + unknown(targets, target_symbols)
    _note(notes, strange, "character", "of val and test that no training sentence has, read as unknown")
    seen, seen_targets = set(pairs["train"]), {target for _, target in pairs["train"]}
    test = pairs["test"]
    notes.append(
        f"{sum(pair in seen for pair in test):,} of {len(test):,} test pairs, and the targets of "
        f"{sum(target in seen_targets for _, target in test):,}, also occur in training"
    )
    return PairData(
        name=source.name,
        pairs=pairs,
        source_symbols=source_symbols,
        target_symbols=target_symbols,
        languages=LANGUAGES.get(source.name, ("source", "target")),
        checksum=checksum,
        official=official,
        licence=source.licence,
        citation=source.citation,
        split_rule=split_rule,
        notes=tuple(notes),
    )
