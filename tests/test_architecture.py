"""The house rules: who may import whom, what stays free of heavy imports, how large a file may grow."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "tiebreak"
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
BASE = ("errors", "files", "streams", "system", "text", "warned", "study.registry")  # what every room may use

# Room, or module with rules of its own -> what of ours it may import besides BASE and its own room.
# docs/architecture.md holds the same table.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(BASE, ()),
    "study": (),
    "verdict.statistics": (),
    "plan.runs": ("study", "data.speech.front_end"),
    "plan": ("study", "catalog", "cost", "data", "models", "tasks", "verdict.ranges", "verdict.statistics"),
    "data": (),
    "cost.formulas": (),
    "layers": ("cost.formulas",),
    "models": ("layers", "cost.formulas"),
    "cost": ("models.design",),
    "tasks": ("data", "models.decoding", "models.design", "models.own_shape", "models.users_lines"),
    "catalog": ("models", "tasks", "study.design_file", "study.own_task_keys"),
    "results": ("study", "plan.runs"),
    "verdict": ("study", "plan.runs", "results"),
    "drive.messages": ("results",),
    "train": ("study", "plan.runs", "catalog", "data", "tasks", "layers", "results", "drive.messages"),
    "drive": (
        "study",
        "plan.runs",
        "results",
        "train",
        "data.checksums",
        "tasks.interface",
        "models.fusibility",
        "models.users_lines",
        "cost",
        "cluster",
    ),
    "cluster": ("study", "plan", "data", "drive", "results"),
    "report": ("study", "plan.runs", "results", "verdict", "tasks.reply"),
    "exchange": ("study", "plan.runs", "results", "verdict", "report"),
    "theory": ("catalog", "cost", "layers", "models.design", "report", "verdict"),
    "program.calls": (),
    "program.function_call": (),
    "program.supervisor": (),
    "program": ("study", "plan", "results", "data.npz", "drive"),
    "drive.run_progress": ("drive.messages", "results"),
    "drive.progress_file": ("drive.messages", "drive.run_progress", "results"),
    "cli.progress": ("drive.messages", "drive.run_progress", "results", "report", "watch"),
    "outcome": ("study", "plan", "results", "verdict", "report", "study_result"),
    "seed_batches": ("outcome", "study", "plan", "drive", "results", "verdict"),
    "study_result": ("study", "plan.runs", "results", "verdict", "report"),
    "api": (
        "outcome",
        "seed_batches",
        "study",
        "plan",
        "drive",
        "program",
        "results",
        "verdict",
        "report",
        "study_result",
        "cli.progress",
    ),
    "watch": ("study", "plan.runs", "results", "verdict", "report"),
    "trained": (
        "api",
        "study",
        "study_result",
        "plan",
        "results",
        "verdict.sides",
        "catalog",
        "models.design",
        "train",
        "drive.recorder",
    ),
    "own_functions": ("api", "study", "plan.runs", "program", "drive", "cli.progress", "report"),
}
ANYTHING = ("cli", "__main__", "__init__")  # the outermost rooms
REGISTRY = (
    "study.registry",
    "study.registry_data",
    "study.registry_designs",
    "study.registry_tasks",
    "study.registry_types",
)
STANDARD_ONLY = (*REGISTRY, "streams", "text")

WITHOUT_TORCH = (
    "api",
    "cli.app",
    "cli.compare_command",
    "cli.results_commands",
    "cli.study_commands",
    "cli.theory_commands",
    "cli.watch_command",
    "data.images.image_data",
    "drive.messages",
    "drive.runner",
    "exchange.score_sources",
    "plan.planner",
    "plan.predict",
    "plan.runs",
    "program.program_driver",
    "report.figures.cost_plot",
    "report.figures.main_figures",
    "report.page.document",
    "report.terminal.claim_table",
    "report.terminal.cost_table",
    "report.terminal.summaries",
    "results.store",
    "study.schema",
    "theory.claims",
    "theory.cost_command",
    "theory.cost_rows",
    "theory.family_sizes",
    "theory.parts",
    "theory.sweep",
    "verdict.decide",
    "verdict.scores",
    "verdict.statistics",
    "watch.beside",
    "watch.web_app",
)


def modules() -> dict[str, Path]:
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = path
    return found


def imports(path: Path) -> set[str]:
    """Everything of ours that the file imports, anywhere in it but under TYPE_CHECKING, without `tiebreak.`"""
    found: set[str] = set()
    tree = ast.parse(path.read_text("utf-8"))
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            base = node.module or ""
            found |= {f"{base}.{alias.name}" if _is_module(f"{base}.{alias.name}") else base for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name.removeprefix("tiebreak.") for name in found if name.startswith("tiebreak.")}


def _is_module(dotted: str) -> bool:
    path = SOURCE.parent / Path(*dotted.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def room(module: str) -> str:
    """The entry of MAY_IMPORT that a module belongs to: itself, or its room."""
    return module if module in MAY_IMPORT else module.partition(".")[0]


def within(module: str, places: tuple[str, ...]) -> bool:
    return any(module == place or module.startswith(f"{place}.") for place in places)


@pytest.mark.parametrize("module", sorted(modules()))
def test_imports_only_what_its_tier_allows(module: str) -> None:
    own = room(module)
    if own in ANYTHING:
        return
    assert own in MAY_IMPORT, f"{module} has no tier: add it here and in docs/architecture.md"
    allowed = (*BASE, own.partition(".")[0], *MAY_IMPORT[own])
    assert not {name for name in imports(modules()[module]) if not within(name, allowed)}


def test_no_import_cycles() -> None:
    graph = {module: imports(path) & set(modules()) for module, path in modules().items() if module != "__init__"}
    done: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " -> ".join((*above, module))
        if module not in done:
            for inner in graph[module]:
                visit(inner, (*above, module))
            done.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize("module", STANDARD_ONLY)
def test_the_lowest_tier_imports_the_standard_library_only(module: str) -> None:
    tree = ast.parse(modules()[module].read_text("utf-8"))
    froms = {
        node.module.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module
    }
    plain = {
        alias.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    assert (froms | plain) - {"tiebreak"} <= set(sys.stdlib_module_names)
    assert imports(modules()[module]) <= {name for name in REGISTRY if module in REGISTRY}


def test_what_must_stay_light_does_not_import_torch() -> None:
    names = ", ".join(f"tiebreak.{module}" for module in WITHOUT_TORCH)
    heavy = ("torch", "scipy.stats", "matplotlib", "sympy", "ray")
    code = f"import sys, {names}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_ray_is_imported_for_a_cluster_only() -> None:
    line = re.compile(r"^\s*(?:import|from) ray\b", re.MULTILINE)
    found = {module for module, path in modules().items() if line.search(path.read_text("utf-8"))}
    assert found
    assert all(module.startswith("cluster.") for module in found)


def test_files_stay_small() -> None:
    sizes = {module: len(path.read_text("utf-8").splitlines()) for module, path in modules().items()}
    assert max(sizes.values()) <= 400, max(sizes, key=lambda module: sizes[module])
    assert sum(size < 250 for size in sizes.values()) >= 0.9 * len(sizes)


def test_the_way_from_the_command_to_a_training_step_is_short() -> None:
    """Besides the process boundary: drive.local_workers, drive.messages, drive.worker."""
    way = ("cli.run_command", "api", "drive.runner", "train.trainer", "train.loop")
    for module, following in pairwise(way[:3]):
        assert following in imports(modules()[module])
    assert {"train.trainer", "train.loop"} <= imports(modules()["drive.worker"])
    assert sum(len(modules()[module].read_text("utf-8").splitlines()) for module in way) <= 900


def test_every_module_says_what_it_is_for() -> None:
    silent = [module for module, path in modules().items() if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]
    assert not silent


def test_what_depends_on_the_system_is_in_one_file() -> None:
    """Nothing that only Linux, or only POSIX, has is used elsewhere: macOS runs the same code."""
    special = re.compile(
        r"/proc\b|/sys/|/dev/|\bfcntl\b"
        r"|^\s*(?:import|from) (?:resource|pwd|grp|termios|msvcrt)\b|\bsched_|\bSIG(?:KILL|HUP|CHLD|USR\d|ALRM|PIPE)\b"
        r"|\bos\.(?:O_\w+|fork|getuid|geteuid|setsid|killpg|mkfifo|memfd_\w+|sendfile|posix_\w+|uname)\b"
        r"|prctl|sys\.platform",
        re.MULTILINE,
    )
    found = {module: special.findall(path.read_text("utf-8")) for module, path in modules().items()}
    assert not {module: names for module, names in found.items() if names and module != "system"}


def test_no_attic() -> None:
    assert not {"utils", "misc", "common", "helpers"} & {path.stem for path in modules().values()}


def test_a_stem_names_one_thing() -> None:
    stems = Counter(path.stem.rstrip("s") for path in modules().values() if path.stem != "__init__")
    assert not [stem for stem, many in stems.items() if many > 1]


def drawn_tree() -> dict[str, set[str]]:
    """The tree of docs/architecture.md: folder -> the modules listed in it. A line is `folder/   a, b, c`."""
    block = PAGE.read_text("utf-8").partition("    src/tiebreak/\n")[2].partition("\n\n")[0]
    found: dict[str, set[str]] = {"": set()}
    above, here = "", ""
    for line in block.splitlines():
        name, slash, rest = line.partition("/")
        if slash:
            nested = len(name) - len(name.lstrip()) > 6
            here = f"{above}/{name.strip()}" if nested else name.strip()
            above = above if nested else here
            found[here] = set()
        found[here] |= set(re.findall(r"[a-z_0-9]+", rest if slash else line))
    return found


def test_the_tree_drawn_in_the_docs_is_the_tree() -> None:
    real: dict[str, set[str]] = {"": set()}
    for path in modules().values():
        folder = path.parent.relative_to(SOURCE).as_posix().replace(".", "")
        real.setdefault(folder, set())
        if not path.stem.startswith("__"):
            real[folder].add(path.stem)
    assert drawn_tree() == real


def test_every_room_has_its_line_in_the_table_of_imports() -> None:
    table = PAGE.read_text("utf-8").partition("## Who may import whom")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \| (.*) \|$", table, re.M))
    told = {room: tuple(re.findall(r"`([a-z_.]+)`", rest)) for room, rest in rows.items()}
    assert {room: set(rest) for room, rest in told.items()} == {room: set(rest) for room, rest in MAY_IMPORT.items()}
