"""`tiebreak data`: list, fetch and check data sets. Heavy modules are imported inside the commands."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tiebreak.cli.output import print_line
from tiebreak.cli.plain_flags import Command, Group
from tiebreak.errors import TiebreakError, nearest

if TYPE_CHECKING:
    from rich.console import Console

data_app = typer.Typer(cls=Group, no_args_is_help=True, help="List, fetch and check data sets.")

DataDirOption = Annotated[
    Path | None, typer.Option("--data-dir", metavar="DIR", help="The folder with your data sets (also: TIEBREAK_DATA).")
]


def _console() -> Console:
    from tiebreak.report.terminal.safe_console import SafeConsole

    return SafeConsole()


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print_line(line)


@data_app.command("list", cls=Command)
def data_list(data_dir: DataDirOption = None) -> None:
    """List the data sets: what they are, their licence, and where their files are on this machine."""
    from tiebreak.data import families, fetch
    from tiebreak.report.terminal import listings
    from tiebreak.study import registry

    fetch.search_path(data_dir)  # a missing --data-dir is an error, not an empty list
    rows = []
    for name, entry in registry.DATA.items():
        try:
            found = ", ".join(map(str, families.locate(name, data_dir).values())) or "embedded"
        except TiebreakError:
            found = "not here"
        source = fetch.find_source(name)
        if source.package and find_spec(source.package) is None:
            found += f"; needs `pip install '{source.extra}'`"
        rows.append((name, entry.line, source.licence, found))
    listings.print_data(_console(), rows)


@data_app.command("fetch", cls=Command)
def data_fetch(name: Annotated[str, typer.Argument(help="See `tiebreak data list`.")]) -> None:
    """Download a data set into the cache. The only command that uses the network."""
    from tiebreak.data import fetch
    from tiebreak.report.terminal import listings

    source = fetch.find_source(name)
    if not source.files:
        print_line(f"{name}: embedded, nothing to fetch")
        return
    fetch.check_fetchable(source)
    print_line(f"{name}: {source.licence}; {source.citation}")
    with listings.download_bar(_console(), name) as bar:
        folder = fetch.fetch(source, bar)
    print_line(f"{name}: in {folder}, checksums as published")


@data_app.command("check", cls=Command)
def data_check(
    name: Annotated[str, typer.Argument(help="See `tiebreak data list`; or the path of your own data.")],
    task: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The task of your own data; default: by its file names."),
    ] = None,
    resize: Annotated[
        int, typer.Option(metavar="N", min=0, max=1024, help="Your own folder of images: as the task option `resize`.")
    ] = 0,
    data_dir: DataDirOption = None,
) -> None:
    """Compare the checksums of a data set's files with the published ones, load it and print what it holds.

    Your own data, by --task: images (classify) are an .npz file in the MedMNIST layout, a folder CLASS/NAME.png, or
    train/CLASS/NAME.png and the same for val and test; sentences (translate) a .tsv file; speech (transcribe) a folder
    with transcripts.tsv and audio, or a .txt file of sentences to be synthesised; text (language) a .txt file; a graph
    (nodes) a folder of CSV files or an .npz file.
    """
    from tiebreak.data import families
    from tiebreak.data.user_paths import find_user_path
    from tiebreak.study import registry

    if task is not None and task not in registry.TASKS:
        raise TiebreakError(f"--task {task}: no such task; {nearest(task, registry.TASKS)}")
    if registry.is_path(name):
        if task is None:
            family = families.likely(find_user_path(name, data_dir))
            task = next(each for each, known in registry.TASKS.items() if known.family == family)
            print_line(f"{name}: read as data of the task {task}; choose another with --task")
        if resize:
            if task != "classify":
                raise TiebreakError(f"--resize {resize}: for images, not for data of the task {task}")
            from tiebreak.data.images import image_data

            _print_lines(image_data.load(name, data_dir, resize).description())
            return
        _print_lines(families.load(registry.TASKS[task].family, name, data_dir).description())
        return
    if name not in registry.DATA and Path(name).exists():
        raise TiebreakError(f"no data set is called {name!r}; for your own data write a slash: ./{name}")
    files = families.verify(name, data_dir)
    loaded = families.load(registry.DATA[name].family, name, data_dir)
    if not files:
        for path in families.locate(name, data_dir).values():
            print_line(f"{name}: read from {path}, which has no published checksum")
    for filename, file in files.items():
        print_line(
            f"{filename}: {file.path}, sha256 {file.sha256}, {'as published' if file.official else 'NOT as published'}"
        )
    _print_lines(loaded.description())
    differing = [filename for filename, file in files.items() if not file.official]
    if differing:
        raise TiebreakError(
            f"{', '.join(differing)}: usable, but not the published file: results hold for your copy only"
        )
