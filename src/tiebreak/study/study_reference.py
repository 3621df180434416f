"""The reference of the study file, docs/study-file.md, and the file of all keys that `tiebreak new --full` writes.

`python -m tiebreak.study.study_reference > docs/study-file.md` writes the page again; a test compares it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from tiebreak.study import registry
from tiebreak.study.parsing import template
from tiebreak.study.registry import Option
from tiebreak.study.study_keys import Key, Table, tables, to_toml_value

WIDTH = 110  # of comments
PREFACE = """\
<!-- Written by `python -m tiebreak.study.study_reference > docs/study-file.md`: do not edit. -->
# The study file

Every key of a study file, which is in [TOML](https://toml.io). `tiebreak new NAME` writes a short one to start from,
`--full` one with every key of this page, `--from pooling` a copy of a built-in study, `--own-task` one with a task of
your own. `tiebreak plan NAME.toml` checks a file and shows what it would train. An unknown key is an error that names
the nearest valid one. `OUT/study.toml` holds the study of a results folder with every default written out.

The column *overridden by* says what may give a key another value: an arm, for itself; a comparison, for itself; the
table `[quick]`, under `--quick`; an option on the command line. What nothing overrides is the same for every arm.
"""


def page() -> str:
    """docs/study-file.md."""
    parts = [PREFACE, *map(_section, tables()), _hypers(), *_tasks(), _designs()]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def full_file(name: str) -> str:
    """A study file with every key: those of the template as they are there, all others as comments with an example."""
    content = {**template(), "name": name}
    lines = [
        "# A study with every key. A line that begins with `#: ` is a key with an example: remove the `#: ` to use it.",
        "# Arms, metrics and options of designs that an example names are to be replaced by those of your study.",
        "# docs/study-file.md in the repository of Tiebreak is the reference; it lists options and hyper-parameters.",
    ]
    shown = set[str]()
    for table in tables():
        lines += ["", *_table_lines(table, _found(content, table), "#: " if table.name in shown else "")]
        shown.add(table.name)
        if table.repeated and not table.kind:
            lines += _further(content.get(table.name, [])[1:], table)
    return "\n".join(lines) + "\n"


def _found(content: Mapping[str, Any], table: Table) -> Mapping[str, Any] | None:
    """What the template has of a table, of a repeated one the first; None if it has none."""
    if not table.name:
        return content
    found: Any = content
    for part in table.name.split("."):
        found = found.get(part)
        if found is None:
            return None
    return dict(found[0]) if table.repeated else dict(found)


def _table_lines(table: Table, found: Mapping[str, Any] | None, mark: str) -> Iterator[str]:
    """The comment, the header and the keys of a table."""
    is_comment = found is None or mark == "#: "
    yield from _comment(table.description)
    scalars = [key for key in table.keys if not _is_top_table(table, key)]
    if table.name:
        yield f"{'#: ' if is_comment else ''}{table.header}"
    for key in scalars:
        yield from _comment(f"{key.description} ({_fact(key)})")
        if is_comment or found is None or key.name not in found:
            yield f"#: {key.name} = {to_toml_value(key.examples[0])}"
        else:
            yield f"{key.name} = {to_toml_value(found[key.name])}"
    for key in table.keys:
        if _is_top_table(table, key) and found is not None:
            yield ""
            yield from _comment(f"{key.description} ({_fact(key)})")
            start = "" if key.name in found else "#: "
            yield f"{start}[{key.name}]"
            for name, value in (found[key.name] if key.name in found else key.examples[0]).items():
                yield f"{start}{name} = {to_toml_value(value)}"


def _is_top_table(table: Table, key: Key) -> bool:
    """Whether the key is written as a table, such as `[grid]`: those come after all other keys at the top."""
    return not table.name and isinstance(key.examples[0], dict)


def _further(items: list[Mapping[str, Any]], table: Table) -> Iterator[str]:
    for item in items:
        yield ""
        yield table.header
        yield from (f"{key} = {to_toml_value(value)}" for key, value in item.items())


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in wrap(text, WIDTH)]


def _fact(key: Key) -> str:
    default = "" if "default:" in key.description else f"default: {_default(key)}"  # some depend on other keys
    return "; ".join(filter(None, (key.type.replace("`", ""), "required" if key.required else default)))


def _default(key: Key) -> str:
    return "none" if key.default in (None, "", {}, ()) else to_toml_value(key.default)


def _section(table: Table) -> str:
    title = f"`{table.header}`" if table.name else "At the top of the file"
    title += f', `kind = "{table.kind}"`' if table.kind else ""
    overridden = f" Overridden as a whole by {', '.join(table.overridden_by)}." if table.overridden_by else ""
    rows = [
        (
            f"`{key.name}`",
            key.type,
            "**required**" if key.required else _default(key) if _default(key) == "none" else f"`{_default(key)}`",
            ", ".join(key.overridden_by) or "—",
            key.description,
            f"`{key.name} = {to_toml_value(key.examples[0])}`" if key.examples else "",
        )
        for key in table.keys
    ]
    head = ("key", "type", "default", "overridden by", "what it is", "example")
    return f"## {title}\n\n{table.description}{overridden}\n\n{_markdown(head, rows)}"


def _hypers() -> str:
    rows = [
        (f"`{name}`", "the design's own" if item.default is None else f"`{item.default:g}`", _range(item), item.line)
        for name, item in registry.HYPERS.items()
    ]
    table = _markdown(("name", "default", "range", "what it is"), rows)
    return f"## Hyper-parameters\n\nThe names in `grid`, `fixed`, `expect` and `setting`.\n\n{table}"


def _tasks() -> Iterator[str]:
    yield "## Tasks\n\nWhat `task`, `metric`, `protocol`, `options` and `evaluation` may be."
    for name, task in registry.TASKS.items():
        metrics = ", ".join(
            f"`{metric}` ({'higher' if item.goal == 'max' else 'lower'} is better)"
            for metric, item in task.metrics.items()
        )
        own = [known for known, data in registry.DATA.items() if data.family == task.family]
        lines = [
            f"### `{name}`\n\n{task.line}\n",
            f"- data: {', '.join(f'`{each}`' for each in own)}, or [your own](own-data.md)",
            f"- metrics: {metrics}",
            f"- protocols: {', '.join(f'`{each}`' for each in task.protocols)}",
        ]
        for title, options in (("options", task.options), ("evaluation", task.evaluation)):
            if options:
                lines.append(f"\n{_options(title, options)}")
        yield "\n".join(lines)
    yield (
        "### `own`\n\n"
        "your own task: functions of the file that `designs_from` names, see [own-task.md](own-task.md)\n\n"
        "- data: what `load` reads: `data` is its path, or is left out\n"
        "- metrics: those of the key `metrics`, and `loss`\n- protocols: `audited`"
    )


def _designs() -> str:
    rows = [
        (
            f"`{name}`",
            next(task for task, entry in registry.TASKS.items() if entry.family == design.family),
            design.line,
            ", ".join(f"`{option} = {to_toml_value(item.default)}`" for option, item in design.options.items()) or "—",
        )
        for name, design in registry.DESIGNS.items()
    ]
    table = _markdown(("design", "task", "what it is", "`build`, with defaults"), rows)
    own = "Your own: [add-a-design.md](add-a-design.md)."
    return f"## Designs\n\nWhat `design` and `build` of an arm may be. {own}\n\n{table}"


def _options(title: str, options: Mapping[str, Option]) -> str:
    rows = []
    for name, item in options.items():
        choices = ", ".join(f"`{to_toml_value(each)}`" for each in item.choices)
        where = "the study only" if item.of_data else "the study, an arm"
        row = (f"`{name}`", f"`{to_toml_value(item.default)}`", choices or _range(item), item.line)
        rows.append((*row, where) if title == "options" else row)
    head = (f"`{title}`", "default", "values", "what it is", *(("set by",) if title == "options" else ()))
    return _markdown(head, rows)


def _range(item: Any) -> str:
    if isinstance(item.default, bool):
        return "true or false"
    low, high = (None if bound is None else f"{bound:g}" for bound in (item.low, item.high))
    return " to ".join(each for each in (low, high) if each) if low and high else f"at least {low}" if low else "—"


def _markdown(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


if __name__ == "__main__":
    print(page(), end="")
