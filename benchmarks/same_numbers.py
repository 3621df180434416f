"""Bit-identical results before and after a change: a cut of every shipped study, compared number by number.

    python benchmarks/same_numbers.py save before.json       # on the old code
    python benchmarks/same_numbers.py compare before.json    # on the new code; exit code 1 where a number differs

Each quick study is trained with 2 seeds for 1 epoch, in a loop and fused. Results are compared by arm, setting and
seed, not by identity: a refactoring may rename what is hashed, it may not change a metric or an outcome.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import tiebreak as tb

STUDIES = (
    "graph-normalisation",
    "heads",
    "kuzushiji",
    "language-model",
    "language-model-audited",
    "pooling",
    "spatial-structure",
    "speech-decoder",
    "translation-attention",
)
STRATEGIES = ("loop", "fused")


def numbers(study: str, strategy: str, folder: Path) -> dict[str, Any]:
    """Every metric of every epoch and evaluation of the study's cut, with the hash of its outcomes."""
    cut = ["--quick", "--seeds", "2", "--epochs", "1", "--strategy", strategy, "--out", str(folder)]
    subprocess.run([sys.executable, "-m", "tiebreak", "run", study, *cut], check=True, stdout=subprocess.DEVNULL)
    result = tb.open_result(folder)
    found: dict[str, Any] = {}
    for arm in result.plan.arms:
        for key, identity in arm.runs.items():
            record = result.records.runs[identity]
            epochs = result.records.epochs.get(record.trajectory, {})
            found[f"{arm.name} {key}"] = {
                "status": record.status,
                "epochs": {str(epoch): dict(each.metrics) for epoch, each in epochs.items()},
                "finals": {
                    name: {"metrics": dict(final.metrics), "outcomes": outcomes_hash(final.outcomes)}
                    for name, final in result.records.finals.get(identity, {}).items()
                },
            }
    return found


def outcomes_hash(outcomes: Any) -> str:
    """One hash of all outcome arrays."""
    parts = hashlib.sha256()
    for name in sorted(outcomes):
        parts.update(f"{name} {outcomes[name].dtype} {outcomes[name].shape}".encode())
        parts.update(outcomes[name].tobytes())
    return parts.hexdigest()


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """The runs in which anything differs."""
    return sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("save", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--studies", nargs="+", default=STUDIES, choices=STUDIES)
    given = parser.parse_args()
    before = json.loads(given.file.read_text("utf-8")) if given.command == "compare" else {}
    now, wrong, compared = {}, [], 0
    for study in given.studies:
        for strategy in STRATEGIES:
            case = f"{study}, {strategy}"
            with tempfile.TemporaryDirectory() as folder:
                now[case] = json.loads(json.dumps(numbers(study, strategy, Path(folder) / "out")))
            compared += len(now[case])
            if given.command == "compare":
                wrong += [f"{case}: {key}" for key in differences(before[case], now[case])]
            print(f"{case}: {len(now[case])} runs", flush=True)
    if given.command == "save":
        given.file.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n", "utf-8")
        return
    print("\n".join(f"differs: {line}" for line in wrong))
    print(f"{compared - len(wrong)} of {compared} runs bit-identical")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
