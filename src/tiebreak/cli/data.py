"""`tiebreak data`: what data sets there are, get one, check one. Everything heavy is imported inside the commands."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tiebreak.errors import TiebreakError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from tiebreak.data.fetch import Checked

LJ, SPOKEN_LJ = "ljspeech", "spoken-ljspeech"  # may lie unpacked, where no checksum is published of what is read

data_app = typer.Typer(no_args_is_help=True, help="Data sets: what there is, get one, check one.")

DataDirOption = Annotated[
    Path | None, typer.Option("--data-dir", metavar="DIR", help="Where your data sets are (also: TIEBREAK_DATA).")
]


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False)


@data_app.command("list")
def data_list(data_dir: DataDirOption = None) -> None:
    """List the data sets: what they are, their licence, and where their files are on this machine."""
    from tiebreak.data import fetch
    from tiebreak.report.terminal import listings
    from tiebreak.study import registry

    fetch.search_path(data_dir)  # a --data-dir that is not there is an error, not an empty list
    rows = []
    for name, entry in registry.DATA.items():
        try:
            found = ", ".join(map(str, _places(name, data_dir))) or "embedded"
        except TiebreakError:
            found = "not here"
        rows.append((name, entry.line, fetch.find_source(name).licence, found))
    listings.print_data(_console(), rows)


@data_app.command("fetch")
def data_fetch(name: Annotated[str, typer.Argument(help="See `tiebreak data list`.")]) -> None:
    """Download a data set into the cache. The only command that uses the network."""
    from tiebreak.data import fetch
    from tiebreak.report.terminal import listings

    source = fetch.find_source(name)
    if not source.files:
        print(f"{name}: embedded, nothing to fetch")
        return
    fetch.check_fetchable(source)
    print(f"{name}: {source.licence}; {source.citation}")
    with listings.download_bar(_console(), name) as bar:
        folder = fetch.fetch(source, bar)
    print(f"{name}: in {folder}, checksums as published")


@data_app.command("check")
def data_check(
    name: Annotated[str, typer.Argument(help="See `tiebreak data list`; or the path of your own data.")],
    task: Annotated[
        str | None, typer.Option(metavar="NAME", help="What your own data is for; default: by the names of files.")
    ] = None,
    data_dir: DataDirOption = None,
) -> None:
    """Compare the checksums of a data set's files with the published ones, load it once and say what it holds.

    Your own data, by --task: images (classify) are an .npz file in the MedMNIST layout, a folder CLASS/NAME.png, or
    train/CLASS/NAME.png and the same for val and test; sentences (translate) a .tsv file; speech (transcribe) a folder
    with transcripts.tsv and audio, or a .txt file of sentences to be spoken; text (language) a .txt file; a graph
    (nodes) a folder of CSV files or an .npz file.
    """
    from tiebreak.data import families
    from tiebreak.data.images.user_images import find_own
    from tiebreak.study import registry

    if task is not None and task not in registry.TASKS:
        raise TiebreakError(f"--task {task}: no such task; {nearest(task, registry.TASKS)}")
    if registry.is_path(name):
        if task is None:
            family = families.likely(find_own(name, data_dir))
            task = next(each for each, known in registry.TASKS.items() if known.family == family)
            print(f"{name}: taken for data of the task {task}; another: --task")
        print("\n".join(families.load(registry.TASKS[task].family, name, data_dir).description()))
        return
    if name not in registry.DATA and Path(name).exists():
        raise TiebreakError(f"no data set is called {name!r}; for your own data write a slash: ./{name}")
    files = _verified(name, data_dir)
    loaded = families.load(registry.DATA[name].family, name, data_dir)
    if not files:
        for path in _places(name, data_dir):
            print(f"{name}: read from {path}, of which no checksum is published")
    for filename, file in files.items():
        print(
            f"{filename}: {file.path}, sha256 {file.sha256}, {'as published' if file.official else 'NOT as published'}"
        )
    print("\n".join(loaded.description()))
    differing = [filename for filename, file in files.items() if not file.official]
    if differing:
        raise TiebreakError(
            f"{', '.join(differing)}: usable, but not the published file: results hold for your copy only"
        )


def _places(name: str, data_dir: Path | None) -> Sequence[Path]:
    """Where a data set is: what its loader reads, or what was fetched and is yet to be unpacked. Embedded: none."""
    from tiebreak.data import fetch

    if name == LJ:
        from tiebreak.data.speech.ljspeech import find_clips

        with suppress(TiebreakError):
            return [find_clips(data_dir)]
    if name == SPOKEN_LJ:
        from tiebreak.data.speech.ljspeech import find_table

        return [find_table(data_dir)]
    return [*fetch.locate(name, data_dir).values()]


def _verified(name: str, data_dir: Path | None) -> Mapping[str, Checked]:
    """The files of a data set, compared with the published checksums; none where it lies unpacked."""
    from tiebreak.data import fetch

    if name == SPOKEN_LJ:
        published = {file.filename: file for file in fetch.find_source(name).files}
        found = {path.name: path for path in _places(name, data_dir)}
        return {name: fetch.compare(path, published[name]) for name, path in found.items() if name in published}
    if name == LJ:
        try:
            fetch.locate(name, data_dir)
        except TiebreakError:  # the archive may be gone once it is unpacked: the loader looks for what was in it
            return {}
    return fetch.verify(name, data_dir)
