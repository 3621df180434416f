"""What watching costs: a run with 50 clients against the same run without, and a large folder opened.

    python benchmarks/watch.py training [--clients 50] [--pairs 3]   CPU seconds of `run pooling --quick`, in turns
    python benchmarks/watch.py folder DIR                            time to the first snapshot, its size, memory
    python benchmarks/watch.py replay DIR [--clients 50]             CPU of the server while runs arrive, four a second

CPU seconds of the training command and its worker processes, not wall time: the machine may do other work. The two
kinds of runs take turns. The clients are connections of this process that read server-sent events all the time.
`replay` takes half of the runs out of a copy of a finished folder and puts them back one by one, as a run would.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import closing, suppress
from pathlib import Path

import psutil

from tiebreak.results.live_progress import LiveProgress, write_live

PORT = int(os.environ.get("PORT", "8473"))  # nothing else may use it
TRAIN = ["run", "pooling", "--quick", "--seeds", "1", "--epochs", "1", "--strategy", "loop"]


async def listen(port: int, path: str, heard: list[int]) -> None:
    """One client: reads events until the server goes away."""
    with suppress(OSError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        while line := await reader.readline():
            heard[0] += line.startswith(b"event:")
            heard[1] += len(line)
        writer.close()


async def listen_all(port: int, clients: int, process: subprocess.Popen[bytes], heard: list[int]) -> None:
    """So many clients of the first study, until the process ends."""
    found = await asyncio.to_thread(get, port, "/api/studies")
    path = f"/api/study/{json.loads(found)['studies'][0]['id']}/events"
    tasks = [asyncio.create_task(listen(port, path, heard)) for _ in range(clients)]
    await asyncio.to_thread(process.wait)
    for task in tasks:
        task.cancel()


def get(port: int, path: str) -> bytes:
    """The answer, as soon as the server is there."""
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
                return bytes(answer.read())
        except OSError:
            time.sleep(0.1)
    raise SystemExit("no server")


def train(clients: int, heard: list[int]) -> tuple[float, float]:
    """CPU seconds of one run and its workers, without those of the server; and the server's."""
    with tempfile.TemporaryDirectory() as place:
        server: subprocess.Popen[bytes] | None = None
        out = Path(place) / "out"
        if clients:
            out.mkdir()
            command = [sys.executable, "-m", "tiebreak", "watch", place, str(out), "--port", str(PORT)]
            server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            get(PORT, "/api/studies")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "tiebreak", *TRAIN, "--out", str(out)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        if clients:
            while not (out / "records.sqlite").exists() or not json.loads(get(PORT, "/api/studies"))["studies"]:
                time.sleep(0.2)
            asyncio.run(listen_all(PORT, clients, process, heard))
        process.wait()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = 0.0
        if server is not None:
            times = psutil.Process(server.pid).cpu_times()
            took = times.user + times.system
            server.terminate()
            server.wait()
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, took


def training(clients: int, pairs: int) -> None:
    print(json.dumps({"cores": os.cpu_count(), "python": sys.version.split()[0], "command": " ".join(TRAIN)}))
    found: dict[str, list[float]] = {"alone": [], "watched": []}
    heard = [0, 0]
    for number in range(pairs):
        for kind in ("alone", "watched") if number % 2 == 0 else ("watched", "alone"):
            cpu, server = train(clients if kind == "watched" else 0, heard)
            found[kind].append(cpu)
            row = {"pair": number, "kind": kind, "cpu": round(cpu, 2), "server cpu": round(server, 2)}
            print(json.dumps(row), flush=True)
    ratios = [watched / alone for watched, alone in zip(found["watched"], found["alone"], strict=True)]
    print(json.dumps({"clients": clients, "events": heard[0], "megabytes": round(heard[1] / 1e6, 1)}))
    medians = {kind: statistics.median(values) for kind, values in found.items()}
    ratio = medians["watched"] / medians["alone"]
    print(json.dumps({"ratio of medians": round(ratio, 4), "ratios": [round(each, 4) for each in ratios]}))


def folder(place: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "tiebreak", "watch", str(place), "--port", str(PORT)], stdout=subprocess.DEVNULL
    )
    try:
        start = time.perf_counter()
        identity = json.loads(get(PORT, "/api/studies"))["studies"][0]["id"]
        up = time.perf_counter()
        snapshot = get(PORT, f"/api/study/{identity}")
        first = time.perf_counter()
        get(PORT, f"/api/study/{identity}")
        second = time.perf_counter()
        process = psutil.Process(server.pid)
        times = process.cpu_times()
        row = {
            "server up": round(up - start, 2),
            "first snapshot": round(first - up, 2),
            "the next": round(second - first, 3),
            "cpu of the server": round(times.user + times.system, 2),
            "snapshot bytes": len(snapshot),
            "resident megabytes": round(process.memory_info().rss / 2**20),
        }
        print(json.dumps(row))
    finally:
        server.terminate()
        server.wait()


def replay(place: Path, clients: int, seconds: float = 60.0) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(shutil.copytree(place, Path(temporary) / "out"))
        rows = take_out(copy)
        runs = 2 * len(rows)
        write_live(copy, LiveProgress.here(copy))
        command = [sys.executable, "-m", "tiebreak", "watch", str(copy), "--port", str(PORT)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            identity = json.loads(get(PORT, "/api/studies"))["studies"][0]["id"]
            get(PORT, f"/api/study/{identity}")
            heard, process = [0, 0], psutil.Process(server.pid)
            before, start = sum(process.cpu_times()[:2]), time.perf_counter()
            asyncio.run(put_back(copy, rows, f"/api/study/{identity}/events", clients, heard, seconds))
            took, wall = sum(process.cpu_times()[:2]) - before, time.perf_counter() - start
            memory = process.memory_info().rss
        finally:
            server.terminate()
            server.wait()
    updates = heard[0] / max(1, clients)
    row = {
        "runs": runs,
        "clients": clients,
        "seconds": round(wall),
        "updates": round(updates),
        "bytes of one": round(heard[1] / max(1, heard[0])),
        "cpu of the server": round(took, 2),
        "share of one core": round(took / wall, 4),
        "cpu of one update": round(took / max(1.0, updates), 4),
        "resident megabytes": round(memory / 2**20),
    }
    print(json.dumps(row))


def take_out(folder: Path) -> list[list[tuple[str, tuple[object, ...]]]]:
    """Remove every second run from a store; what was removed, run by run, as statements to put it back."""
    found = []
    with closing(sqlite3.connect(folder / "records.sqlite")) as store, store:
        for number, (identity, path) in enumerate(store.execute("SELECT identity, trajectory FROM runs").fetchall()):
            if number % 2 == 0:
                continue
            statements = []
            keys = (("epochs", "trajectory", path), ("runs", "identity", identity), ("finals", "identity", identity))
            for table, key, value in keys:
                for row in store.execute(f"SELECT * FROM {table} WHERE {key} = ?", (value,)):
                    statements.append((f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row))
                store.execute(f"DELETE FROM {table} WHERE {key} = ?", (value,))
            found.append(statements)
    return found


async def put_back(
    folder: Path,
    rows: list[list[tuple[str, tuple[object, ...]]]],
    path: str,
    clients: int,
    heard: list[int],
    seconds: float,
) -> None:
    """Four runs a second, while clients listen."""
    tasks = [asyncio.create_task(listen(PORT, path, heard)) for _ in range(clients)]
    live, end = LiveProgress.here(folder), time.monotonic() + seconds
    with closing(sqlite3.connect(folder / "records.sqlite", isolation_level=None)) as store:
        while time.monotonic() < end:
            if rows:
                store.execute("BEGIN IMMEDIATE")
                for statement, row in rows.pop():
                    store.execute(statement, row)
                store.execute("COMMIT")
            now = time.time()
            write_live(folder, live.model_copy(update={"updated": now, "seconds_left": end - time.monotonic()}))
            await asyncio.sleep(0.25)
    for task in tasks:
        task.cancel()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["training", "folder", "replay"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--pairs", type=int, default=3)
    given = parser.parse_args()
    if given.what == "training":
        training(given.clients, given.pairs)
    elif given.what == "folder":
        folder(given.folder)
    else:
        replay(given.folder, given.clients)
