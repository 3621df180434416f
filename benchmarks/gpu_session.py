"""All that is to be measured on a GPU, in parts with limits: for a machine lent for minutes, without a package index.

    python benchmarks/gpu_session.py --pack --data-dir DIR          here: packages and data into .wheels, to be carried
    python benchmarks/gpu_session.py [STAGE ...] --out FOLDER       there
    python benchmarks/gpu_session.py STAGE ... --beside held-out    a study trains meanwhile
    python benchmarks/gpu_session.py --smoke --out FOLDER           tiny sizes on a CPU: that every part runs

A stage is a part, or parts joined by + that run side by side; stages follow one another. Without one, what is needed
most comes first: tests+nets start taylor held-out spoken.

| part      | seconds | what                                                                                          |
|-----------|---------|-----------------------------------------------------------------------------------------------|
| tests     | 300     | `make gpu-test` in 14 processes                                                               |
| nets      | 540     | own_nets.py: ours, one run in turns, plain torch and JAX; all are prepared at the same time,  |
|           |         | and timed one after the other once the other parts of the stage have ended, not before        |
| nets-more | 480     | the other types, numbers of runs and peers                                                    |
| start     | 120     | start.py: from the command to the first trained step, caches empty and full                   |
| taylor    | 120     | taylor_gpu.py: softmax beside ours, also one sequence of 2,048 and 4,096, the kernels of      |
|           |         | flash-linear-attention, plain torch compiled                                                  |
| features  | 180     | the recordings of `spoken`, made and kept on the machine                                      |
| profile   | 150     | step_profile.py: where the steps of `held-out` and `spoken` spend their time                  |
| held-out  | 590     | `tiebreak run benchmarks/ptb_held_out.toml`, bf16                                             |
| spoken    | 590     | `tiebreak run benchmarks/spoken_decoders.toml`, nine seeds, bf16                              |

Where calls end after ten minutes: `tests+nets`, then `start taylor`, then the two studies. What a part found is
in FOLDER as soon as it ends, with session.json (seconds, exit codes, the end of what was printed). The two studies go
on where they stopped if they are called again before the machine is given back; no times are taken from them.

`--beside` names one of the two studies, which trains while other parts compile and stands still while times are taken.
It outlives the call: another one with the same option finds it, and one without stages waits for its end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import Any

from peers.beside import Beside
from peers.session_rows import MORE, NETS, OURS, Row, each_of

ROOT = Path(__file__).parent.parent
CARRIED = ROOT / ".wheels"  # ignored by git
STUDIES = ROOT / "runs" / "gpu-session"
PACKAGES = (
    "rapidfuzz",
    "pooch",
    "platformdirs",
    "soundfile",
    "cffi",
    "num2words",
    "mlxtend",
    "espeakng-loader",
    "tomli-w",
    "fla-core",
    "einops",
    "pytest-xdist",
    "execnet",
)
DATA = ("ptb", "ljspeech")
KEPT = ("study.toml", "plan.json", "verdict.json", "report.md", "records.sqlite", "records.sqlite-wal")
PROFILED: list[tuple[Any, ...]] = [
    ("ptb_held_out.toml", "as-reported", 8, "--compiled"),
    ("ptb_held_out.toml", "as-reported", 8),
    ("spoken_decoders.toml", "attention", 9),
    ("spoken_decoders.toml", "lstm", 9),
]
ALL = ("tests+nets", "start", "taylor", "held-out", "spoken")
TIMED = ("start", "taylor", "profile")  # parts in which nothing else may use the GPU
LEAST = 60  # seconds that must be left for a part to begin
PREPARED = 0.65  # of the limit, after which networks are timed though others are still compiling


@dataclass
class Session:
    """Where results go, and when everything ends."""

    out: Path
    smoke: bool
    end: float
    environment: dict[str, str]
    data: Path
    beside: Beside
    found: dict[str, Any] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def note(self, part: str, **values: Any) -> None:
        """Keep what is known of a part."""
        with self.lock:
            self.found.setdefault(part, {}).update(values)
            (self.out / "session.json").write_text(json.dumps(self.found, indent=1) + "\n", "utf-8")
        print(part, json.dumps(values)[:600], flush=True)


@dataclass
class Call:
    """A command that is at work, and what it prints."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    began: float

    def ended(self, limit: float, quiet: float = 10.0) -> dict[str, Any]:
        """Wait until it ends, or end it then and all that it started: first as Ctrl-C does."""
        for how, last in ((signal.SIGINT, limit), (signal.SIGKILL, max(limit, time.monotonic()) + quiet)):
            try:
                self.process.wait(max(0.0, last - time.monotonic()))
                break
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, how)
        code = self.process.wait()
        text = self.log.read_text("utf-8", "replace")
        return {"seconds": round(time.monotonic() - self.began, 1), "code": code, "end": text[-1500:]}


Part = Callable[[Session, float, Event], None]  # with its end, and a sign that the rest of the stage has ended


def begin(session: Session, name: str, *command: object, patient: bool = False) -> Call:
    """Start a Python program from the repository's root; a patient one gets the cores that others leave."""
    log = Path(tempfile.mkdtemp()) / "log"
    before = ["nice", "-n", "10"] if patient else []
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*before, sys.executable, *map(str, command)], cwd=ROOT, env=session.environment, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    return Call(name, process, log, time.monotonic())


def tests(session: Session, end: float, quiet: Event) -> None:
    """The tests for a GPU, in as many processes as most cores take; what each said is in tests.log."""
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if "pytest.mark.gpu" in path.read_text("utf-8")]
    given = [
        "-m",
        "gpu",
        "-v",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:benchmark",
        "--durations",
        "12",
        "-n",
        "14",
        "--dist",
        "worksteal",
    ]
    if session.smoke:
        given, files = ["-m", "gpu", "-q", "-n", "2"], files[:3]
    call = begin(session, "tests", "-m", "pytest", *given, *sorted(path.relative_to(ROOT) for path in files))
    done = call.ended(end)
    shutil.copyfile(call.log, session.out / "tests.log")
    text = call.log.read_text("utf-8", "replace")
    session.note("tests", **done, failed=[line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))])


def nets(session: Session, end: float, quiet: Event, part: str = "nets") -> None:
    """All rows are prepared at the same time; when the rest of the stage has ended, one after the other is timed."""
    began, gate = time.monotonic(), Path(tempfile.mkdtemp())
    rows: list[Row] = [("vit", "2", "float32", OURS), ("separable", "2", "float32", "plain eager")]
    if not session.smoke:
        rows = each_of(NETS if part == "nets" else MORE)
    calls = []
    for number, (net, n, precision, side) in enumerate(rows):
        given = ["--nets", net, "--runs", n, "--precision", precision, "--peers", side, "--steps", 60, "--budget", 8]
        given += ["--gate", gate, "--out", gate / f"{number}.json", *(["--smoke"] if session.smoke else [])]
        file = ROOT / "benchmarks" / "own_nets.py"
        calls.append(begin(session, " ".join(rows[number]), file, *given, patient=True))
    latest = began + PREPARED * (end - began)
    while time.monotonic() < latest and len(list(gate.glob("ready-*"))) < sum(c.process.poll() is None for c in calls):
        time.sleep(0.5)
    ready = len(list(gate.glob("ready-*")))
    session.note(part, rows=len(rows), ready=ready, prepared_s=round(time.monotonic() - began, 1))
    if not quiet.wait(max(0.0, end - LEAST - time.monotonic())):
        session.note(part, skipped="the other parts of the stage took all the time")
        end = time.monotonic()
    with session.beside.still():
        if end > time.monotonic():
            (gate / "go").touch()
        while time.monotonic() < end and any(call.process.poll() is None for call in calls):
            time.sleep(1.0)
            keep_rows(session.out / f"{part}.json", gate)
    ended = {call.name: call.ended(end, 1.0) for call in calls}
    keep_rows(session.out / f"{part}.json", gate)
    without = {name: done for name, done in ended.items() if done["code"]}
    session.note(part, seconds=round(time.monotonic() - began, 1), without=without)


def keep_rows(out: Path, gate: Path) -> None:
    """Gather what the processes have written so far."""
    kept: list[Any] = []
    for path in sorted(gate.glob("*.json")):
        with suppress(ValueError):  # it is being written
            kept += json.loads(path.read_text("utf-8"))
    out.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


def script(name: str, file: str, *options: object, within: bool = False) -> Part:
    """A part that is one benchmark, which writes its rows itself; some take a budget of seconds."""

    def work(session: Session, end: float, quiet: Event) -> None:
        given = [*options, *(["--budget", end - time.monotonic() - 15] if within else [])]
        out = ["--out", session.out / f"{name}.json"]
        call = begin(session, name, ROOT / "benchmarks" / file, *out, *(["--smoke"] if session.smoke else given))
        session.note(name, **call.ended(end))

    return work


def features(session: Session, end: float, quiet: Event) -> None:
    """Speak the transcripts: planning loads the data, which stay in the cache."""
    given = ["plan", ROOT / "benchmarks" / "spoken_decoders.toml", "--data-dir", session.data, "--seeds", "9"]
    if session.smoke:
        given = ["plan", "pooling", "--quick"]
    session.note("features", **begin(session, "features", "-m", "tiebreak", *given).ended(end))


def profiles(session: Session, end: float, quiet: Event) -> None:
    """Where training steps spend their time, one after the other; how each starts up is shared."""
    cases = [[ROOT / "benchmarks" / file, arm, "--seeds", seeds, *more] for file, arm, seeds, *more in PROFILED]
    cases = [["pooling", "pool", "--quick", "--seeds", 2, "--device", "cpu"]] if session.smoke else cases
    for number, case in enumerate(cases):
        given = case if session.smoke else [*case, "--precision", "bf16", "--data-dir", session.data]
        out = session.out / f"profile-{number}.json"
        call = begin(session, "profile", ROOT / "benchmarks" / "step_profile.py", *given, "--out", out)
        session.note("profile", **{str(number): call.ended(end, 1.0)})


def training(session: Session, name: str) -> list[str]:
    """The command that trains a study."""
    file, *options = STUDIED[name]
    given: list[object] = [ROOT / "benchmarks" / file, *options, "--precision", "bf16", "--strategy", "fused"]
    given += ["--data-dir", session.data, "--device", "cuda"]
    if session.smoke:
        given = ["language-model", "--quick", "--seeds", "2", "--epochs", "1", "--device", "cpu"]
    return ["-m", "tiebreak", "run", *map(str, given), "--out", str(results(session, name))]


def results(session: Session, name: str) -> Path:
    """Where a study's results are."""
    return STUDIES / (f"smoke-{name}" if session.smoke else name)


def study(name: str) -> Part:
    """A part that trains a study; its verdict and records come back."""

    def work(session: Session, end: float, quiet: Event) -> None:
        session.note(name, **begin(session, name, *training(session, name)).ended(end - 15, 10.0))
        bring_back(session, name)

    return work


def bring_back(session: Session, name: str) -> None:
    """Put the verdict and the records of a study, as far as it is, where they are taken from."""
    folder = results(session, name)
    with tarfile.open(session.out / f"{name}.tar.xz", "w:xz", preset=1) as archive:
        for kept in KEPT:
            if (folder / kept).is_file():
                archive.add(folder / kept, f"{name}/{kept}")


def beside_until(session: Session, name: str, end: float) -> None:
    """Wait for the end of the study that trains beside."""
    while session.beside.running() and time.monotonic() < end - 10:
        time.sleep(1.0)
    session.note(name, running=session.beside.running(), end=session.beside.log.read_text("utf-8", "replace")[-3000:])
    bring_back(session, name)


STUDIED = {
    "held-out": ("ptb_held_out.toml", "--seeds", "8", "--workers", "2"),
    "spoken": ("spoken_decoders.toml", "--seeds", "9", "--workers", "2"),
}
PARTS: dict[str, tuple[int, Part]] = {
    "tests": (300, tests),
    "nets": (540, nets),
    "nets-more": (480, lambda session, end, quiet: nets(session, end, quiet, "nets-more")),
    "start": (120, script("start", "start.py")),
    "taylor": (120, script("taylor", "taylor_gpu.py", "--parts", "compare,decoding,profile", within=True)),
    "features": (180, features),
    "profile": (150, profiles),
    "held-out": (590, study("held-out")),
    "spoken": (590, study("spoken")),
}


def stage(session: Session, names: Sequence[str]) -> None:
    """Parts side by side, each until its limit. `nets` is told when the others have ended."""
    quiet, left = Event(), {name for name in names if not name.startswith("nets")}
    if not left:
        quiet.set()

    def one(name: str) -> None:
        seconds, work = PARTS[name]
        try:
            if time.monotonic() > session.end - LEAST:
                session.note(name, skipped="no time is left")
            else:
                with session.beside.still() if name in TIMED else nullcontext():
                    work(session, min(session.end, time.monotonic() + seconds), quiet)
        except Exception as error:  # the other parts go on
            session.note(name, error=f"{type(error).__name__}: {error}"[:500])
        left.discard(name)
        if not left:
            quiet.set()

    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(one, names))


def pack(data: Path) -> None:
    """What the machine lacks, as an archive that can be carried."""
    CARRIED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder]
        pip += ["--python-version", "3.12", "--only-binary=:all:"]
        subprocess.run([*pip, "pydantic"], check=True)  # with its own, whose versions must fit
        subprocess.run([*pip, "--no-deps", *PACKAGES], check=True)
        with tarfile.open(CARRIED / "packages.tar.xz", "w:xz") as archive:
            archive.add(folder, "packages")
    for name in DATA:
        shutil.copytree(data / name, CARRIED / "data" / name, dirs_exist_ok=True)
    size = sum(path.stat().st_size for path in CARRIED.rglob("*") if path.is_file())
    print(f"{CARRIED}: {size / 2**20:.1f} MiB; carry it, and the machine takes 64 MiB with the working tree")


def environment(smoke: bool) -> dict[str, str]:
    """What programs see: this source, the packages that were carried, one thread for torch.

    Dozens of programs that each take all cores for small operations do not get on: threads wait for one another.
    """
    paths = [str(ROOT / "src"), str(ROOT / "tests")]
    if not smoke and (CARRIED / "packages.tar.xz").is_file():
        if not (STUDIES / "packages").is_dir():
            with tarfile.open(CARRIED / "packages.tar.xz") as archive:
                archive.extractall(STUDIES, filter="data")
        paths.append(str(STUDIES / "packages"))
    kept = {"PYTHONPATH": os.pathsep.join(paths), "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONUNBUFFERED": "1"}
    kept["OMP_NUM_THREADS"] = "1"
    if smoke:
        kept["TRITON_INTERPRET"] = "1"
    return {**os.environ, **kept, "TORCHINDUCTOR_COMPILE_THREADS": "4"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stages", nargs="*", metavar="STAGE")
    parser.add_argument("--beside", choices=sorted(STUDIED), help="a study that trains meanwhile")
    parser.add_argument("--out", type=Path, default=Path("gpu-session"))
    parser.add_argument("--data-dir", type=Path, default=CARRIED / "data")
    parser.add_argument("--seconds", type=float, default=1700.0, help="for all stages")
    parser.add_argument("--pack", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    given = parser.parse_args()
    stages = [each.split("+") for each in given.stages or (() if given.beside else ALL)]
    if unknown := [name for names in stages for name in names if name not in PARTS]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if given.pack:
        pack(given.data_dir)
        return
    given.out.mkdir(parents=True, exist_ok=True)
    STUDIES.mkdir(parents=True, exist_ok=True)
    out, end = given.out.resolve(), time.monotonic() + given.seconds
    beside = Beside(STUDIES / f"{given.beside}.pid")
    session = Session(out, given.smoke, end, environment(given.smoke), given.data_dir.resolve(), beside)
    if given.beside:
        beside.start([sys.executable, *training(session, given.beside)], session.environment, ROOT)
    for names in stages:
        stage(session, names)
    if given.beside:
        beside_until(session, given.beside, end)


if __name__ == "__main__":
    main()
