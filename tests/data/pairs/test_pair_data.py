from __future__ import annotations

import gzip
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.real_data import need
from tiebreak.data.pairs.pair_data import PairData, checksum, load
from tiebreak.errors import TiebreakError

pytestmark = pytest.mark.usefixtures("empty_cache")

FORM = "source TAB target"


def lines(count: int, first: int = 0) -> str:
    return "".join(f"Source {number}\tTarget {number}\n" for number in range(first, first + count))


def folder(root: Path, **files: str) -> Path:
    root.mkdir(exist_ok=True)
    texts = {"train": lines(6), "val": lines(2, 6), "test": lines(2, 8)} | files
    for split, text in texts.items():
        (root / f"{split}.tsv").write_text(text, "utf-8")
    return root


def everything(data: PairData) -> list[tuple[str, str]]:
    return [pair for pairs in data.pairs.values() for pair in pairs]


def refusal(call: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(TiebreakError) as caught:
        call(*arguments)
    line = str(caught.value)
    assert line.isprintable()
    return line


# A user's own file


def test_a_file_is_split_80_10_10_and_every_pair_is_in_one_split(tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text(lines(107), "utf-8")
    data = load(str(path))
    assert data.sizes == {"train": 87, "val": 10, "test": 10}
    assert sorted(everything(data)) == sorted((f"source {n}", f"target {n}") for n in range(107))
    assert data.languages == ("source", "target")
    assert data.official is None
    assert data.checksum == checksum(str(path)) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert data.split_rule == "80/10/10 at random, the same for everyone"
    assert data.notes[-1] == "0 of 10 test pairs, and the targets of 0, also occur in training"


def test_the_split_never_moves(tmp_path: Path) -> None:
    for name in ("one.tsv", "two.txt"):
        (tmp_path / name).write_text(lines(20), "utf-8")
    one, two = load(str(tmp_path / "one.tsv")), load("./two.txt", tmp_path)
    assert one.pairs == two.pairs
    assert [source for source, _ in one.pairs["test"]] == ["source 5", "source 12"]


def test_further_columns_a_mark_of_byte_order_and_windows_line_ends_are_no_matter(tmp_path: Path) -> None:
    plain, odd = tmp_path / "plain.tsv", tmp_path / "odd.tsv"
    plain.write_text(lines(12), "utf-8")
    odd.write_bytes(b"\xef\xbb\xbf" + lines(12).replace("\n", "\t42\tx\r\n").encode()[:-2])
    assert load(str(odd)).pairs == load(str(plain)).pairs


def test_text_is_lower_cased_and_stripped_and_otherwise_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text("".join(f"  Добрый\u00a0 ДЕНЬ, {n}! \tGuten  TÄG; {n}?\n" for n in range(10)), "utf-8")
    assert ("добрый день, 3!", "guten täg; 3?") in everything(load(str(path)))


def test_what_is_dropped_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text(lines(10) + "\n \n" + "no target\t \n\tno source\t1\n" + lines(3) + "SOURCE 0\ttarget 0\n", "utf-8")
    data = load(str(path))
    assert data.notes == (
        "2 blank lines skipped in mine.tsv",
        "1 line of mine.tsv with further columns, which are left out",
        "2 pairs dropped in mine.tsv: an empty source or target",
        "4 repeated pairs dropped",
        "4 characters of val and test that no training sentence has, read as unknown",
        "0 of 1 test pairs, and the targets of 0, also occur in training",
    )
    assert data.sizes == {"train": 8, "val": 1, "test": 1}
    assert "  4 repeated pairs dropped" in data.description()


# A user's own folder


def test_a_folder_is_split_as_its_files_are(tmp_path: Path) -> None:
    root = folder(tmp_path / "mine", test=lines(1) + "New\tTarget 1\n" + "Žluť\t8\n" + "q\tTarget 0\n" + "r\ts\n")
    data = load(f"{root}/")
    assert data.sizes == {"train": 6, "val": 2, "test": 5}
    assert data.pairs["val"] == (("source 6", "target 6"), ("source 7", "target 7"))
    assert data.source_symbols == tuple(" 012345ceorsu")
    assert data.target_symbols == tuple(" 012345aegrt")
    assert data.split_rule == "as in the files train, val and test"
    assert data.notes == (
        "12 characters of val and test that no training sentence has, read as unknown",
        "1 of 5 test pairs, and the targets of 3, also occur in training",
    )
    assert data.description() == [
        f"{root}/: source to target, 6 train, 2 val, 5 test; 13 and 12 symbols, at most 8 and 8 characters",
        f"{root}/: split as in the files train, val and test; sha256 {data.checksum}",
        *(f"  {note}" for note in data.notes),
    ]


def test_repeated_pairs_of_given_splits_stay(tmp_path: Path) -> None:
    assert load(f"{folder(tmp_path / 'mine', train=lines(6) * 2)}/").sizes["train"] == 12


def test_the_checksum_of_a_folder_sees_every_file_and_not_the_place(tmp_path: Path) -> None:
    one, two = folder(tmp_path / "one"), folder(tmp_path / "two")
    assert checksum(f"{one}/") == checksum(f"{two}/") == load(f"{two}/").checksum
    seen = {checksum(f"{one}/")}
    for split in ("train", "val", "test"):
        seen.add(checksum(f"{folder(two, **{split: lines(3)})}/"))
    assert len(seen) == 4


def test_a_folder_without_its_files(tmp_path: Path) -> None:
    root = folder(tmp_path / "mine")
    (root / "val.tsv").unlink()
    for call in (load, checksum):
        line = refusal(call, f"{root}/")
        assert line.startswith(f"{root}/val.tsv: no such file")
        assert "train.tsv, val.tsv and test.tsv" in line
    (root / "val.tsv").mkdir()
    assert refusal(load, f"{root}/").startswith(f"{root}/val.tsv: a folder")


# What can be wrong with a file


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\nno tab here\n", f"line 2: no tab.*{FORM}"),
        (b"a\tb\nc\td\n\xff\te\n", "line 3: not UTF-8"),
        (b"a\tb\n\xc3", "line 2: not UTF-8"),
        ("a\tb\n".encode("utf-16"), "line 1: a NUL byte"),
        (b"a\tb\nc\0\td\n", "line 2: a NUL byte"),
        (b"", f"empty.*{FORM}"),
        (b"\xef\xbb\xbf\n \r\n", f"empty.*{FORM}"),
        (b"a\tb\n" + b"x" * (1 << 20), f"line 2: 1,048,576 characters.* 10,000 .*{FORM}"),
        (b" \t.\n" * 20, f"every pair has an empty source or target.*{FORM}"),
        (lines(9).encode() * 2, "different pairs: 9, too few.*80/10/10.* 10 "),
    ],
    ids=["no tab", "invalid", "cut", "utf-16", "NUL", "empty", "blank", "1 MB line", "empty sides", "too few"],
)
def test_bad_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "mine.tsv"
    path.write_bytes(content)
    assert re.match(re.escape(f"{path}: ") + message, refusal(load, str(path)))


def test_names_that_are_none(tmp_path: Path) -> None:
    assert refusal(load, "./nowhere.tsv").startswith("./nowhere.tsv: no such file or folder")
    assert "did you mean 'number-words'? (your own pairs are a path with a slash" in refusal(load, "number-word")
    assert "did you mean 'number-words'?" in refusal(checksum, "number-word")
    (tmp_path / "mine.csv").write_text(lines(10), "utf-8")
    assert "mine.csv: not a .tsv or .txt file; your own pairs are" in refusal(load, str(tmp_path / "mine.csv"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_that_may_not_be_read(tmp_path: Path) -> None:
    path, root = tmp_path / "mine.tsv", folder(tmp_path / "mine")
    path.write_text(lines(10), "utf-8")
    path.chmod(0)
    root.chmod(0)
    try:
        assert refusal(load, str(path)).endswith("Permission denied")
        assert refusal(load, f"{root}/").endswith("Permission denied")
    finally:
        root.chmod(0o700)


# Tatoeba


def test_tatoeba_files_are_english_first_and_read_as_they_are(tmp_path: Path) -> None:
    root = tmp_path / "tatoeba_spa_eng"
    root.mkdir()
    for split in ("train", "val", "test"):
        (root / f"{split}-eng-spa.txt").write_text(f"who ?\t quien {split} ?\t42\n", "utf-8")
    data = load("tatoeba-spa-eng", tmp_path)
    assert data.pairs["test"] == ((" quien test ?", "who ?"),)
    assert data.languages == ("Spanish", "English")
    assert data.official is False
    assert data.checksum == checksum("tatoeba-spa-eng", tmp_path)
    assert data.licence == "CC BY 2.0"
    assert data.notes[-1] == "0 of 1 test pairs, and the targets of 1, also occur in training"


def test_the_short_pairs_of_the_full_set_are_normalised_and_split(tmp_path: Path) -> None:
    text = "".join(f"Go, {letter * 3}!\t¡Vé, {letter * 3}!\n" for letter in "abcdefghijklmnopqrstuvwxyz")
    text += "Go aaa!\tve (aaa)!\n" + "Who?\t" + "a" * 20 + "\n" + "b" * 19 + "\t" + "c" * 19 + "\n" + "5\tcinco\n"
    (tmp_path / "spa_full_118964.txt.gz").write_bytes(gzip.compress(text.encode()))
    data = load("tatoeba-full", tmp_path)
    assert data.sizes == {"train": 23, "val": 2, "test": 2}
    assert {("ve zzz !", "go zzz !"), ("c" * 19, "b" * 19)} <= set(everything(data))
    assert data.notes[:3] == (
        "1 pair dropped in spa_full_118964.txt.gz: an empty source or target",
        "1 pair dropped: a sentence of 20 characters or more",
        "1 repeated pair dropped",
    )
    assert data.checksum == checksum("tatoeba-full", tmp_path)


def test_tatoeba_is_not_for_download(tmp_path: Path) -> None:
    assert "train-eng-spa.txt and val-eng-spa.txt" in refusal(load, "tatoeba-spa-eng", tmp_path)
    assert "it is not for download: put it there" in refusal(checksum, "tatoeba-full", tmp_path)


def test_the_pairs_of_the_reports() -> None:
    data = load("tatoeba-spa-eng", need("tatoeba_spa_eng"))
    assert data.official
    assert data.sizes == {"train": 10_483, "val": 1000, "test": 1000}
    assert data.source_symbols == data.target_symbols == tuple(" !.?abcdefghijklmnopqrstuvwxyz")
    assert data.longest == (19, 19)
    assert data.notes == ("10 of 1,000 test pairs, and the targets of 354, also occur in training",)


def test_the_full_set() -> None:
    data = load("tatoeba-full", need("tatoeba_spa_eng"))
    assert data.official
    assert data.sizes == {"train": 8211, "val": 1026, "test": 1026}
    assert data.source_symbols == data.target_symbols == tuple(" !.?abcdefghijklmnopqrstuvwxyz")
    assert len(set(everything(data))) == 8211 + 2 * 1026
    assert data.notes[0] == "108,648 pairs dropped: a sentence of 20 characters or more"


# Numbers in words


def test_pairs_need_neither_torch_nor_num2words_to_be_imported() -> None:
    code = "import sys, tiebreak.data.pairs.pair_data; print([m for m in ('torch', 'num2words') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
