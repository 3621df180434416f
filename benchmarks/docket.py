"""Makes the package's docket from the kept verdicts: python benchmarks/docket.py [--check]

Reads results/kept.toml, which says where each kept verdict comes from, and writes src/tiebreak/verdict/docket.json.
To keep a new result, copy its verdict.json to results/, name it in kept.toml and run this again. `--check` writes
nothing and fails where docket.json is not what the kept verdicts say.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError
from scipy import stats

from tiebreak import files
from tiebreak.errors import TiebreakError
from tiebreak.study import parsing
from tiebreak.study.schema import Study
from tiebreak.theory.claims import check_known
from tiebreak.verdict.docket import DOCKET_FILE, Docket, DocketEntry, Figure, Origin, entries_of, outcome, read_kept
from tiebreak.verdict.sequential import Looks
from tiebreak.verdict.statistics import Sample, compare

RESULTS = Path(__file__).parent / "results"


def make(results: Path = RESULTS) -> Docket:
    """Every claim that a kept verdict speaks of, best evidence first."""
    kept = results / "kept.toml"
    try:
        listed = tomllib.loads(files.read_text(kept))
        origins = [Origin.model_validate(item) for item in listed.get("kept", [])]
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        said = parsing.explain(error) if isinstance(error, ValidationError) else str(error)
        raise TiebreakError(f"{kept}: {said}") from None
    found: list[DocketEntry] = []
    for origin in origins:
        verdict = with_looks(read_kept(results / origin.file), origin.looks)
        small = Study.load(origin.study).quickened() if "--quick" in origin.command else None
        found += entries_of(verdict, origin, _sha256(results / origin.file), small)
    found += [_timed(results / item["file"], item) for item in listed.get("timed", [])]
    named = [claim for origin in origins for claim in (*origin.limits, *origin.notes, *filter(None, [origin.quality]))]
    check_known([*named, *(entry.claim for entry in found)], str(kept))
    return Docket(entries=tuple(sorted(found, key=lambda entry: (entry.claim, entry.rank, entry.file))))


def with_looks(verdict: dict[str, Any], earlier: Sequence[int]) -> dict[str, Any]:
    """A verdict as one that counts earlier looks: decided anew, by the t-test, from differences and p-values.

    The scores of the runs are not kept. Any sample of the same mean and standard deviation has the same t-test; this
    one is symmetric.
    """
    if not earlier:
        return verdict
    if any(item["metric"] != verdict["metric"]["name"] for item in verdict["comparisons"]):
        raise TiebreakError("looks: only of a verdict whose comparisons are all of one metric")
    items, samples = verdict["comparisons"], []
    for item in items:
        n = item["seeds"]
        signs = np.where(np.arange(n) % 2, 1.0, -1.0)
        signs[-1] *= n % 2 == 0
        scale = abs(item["difference"]) * math.sqrt(n) / stats.t.isf(item["p"] / 2, n - 1) / signs.std(ddof=1)
        samples.append(
            Sample(
                a=item["difference"] + scale * signs,
                b=np.zeros(n),
                goal=verdict["metric"]["goal"],
                margin=item["margin"],
            )
        )
    looks = Looks((*earlier, verdict["seeds"]), earlier[0])
    found = compare(samples, margin=verdict["margin"], looks=looks)
    again = [
        item | {"verdict": own.verdict, "low": own.low, "high": own.high, "p_adjusted": own.p_adjusted}
        for item, own in zip(items, found, strict=True)
    ]
    return verdict | {"comparisons": again}


def _sha256(path: Path) -> str:
    return hashlib.sha256(files.read_bytes(path)).hexdigest()


def _timed(path: Path, item: dict[str, Any]) -> DocketEntry:
    """The last row of a benchmark that timed two designs alone and in turns."""
    try:
        row = json.loads(files.read_text(path))[-1]
        ratio, limits = {key: row[key] for key in ("low", "high")}, item.get("limits", "")
        least = item.get("least", 1.0)  # the ratio that the claim is about
        verdict = "a" if row["low"] > least else "b" if row["high"] < least else "undecided"
        figure = Figure(
            what=item["what"], value=row["ratio"], **ratio, margin=None, none=least, verdict=verdict, expect="a"
        )
        return DocketEntry(
            claim=item["claim"], outcome=outcome([verdict], "a"), hint=bool(limits), limits=limits, figures=(figure,),
            n=row["rounds"], unit="rounds, timed alone and in turns", data=item["data"],
            protocol="training steps alone", epochs=None,
            device=row["device"], date=row["date"], command=row["command"], file=path.name, sha256=_sha256(path),
            quality=item.get("quality", False),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise TiebreakError(f"{path}: damaged benchmark ({error}); run it again with --save") from None


def main() -> None:
    try:
        text = make().to_json()
        if "--check" in sys.argv[1:]:
            if files.read_text(DOCKET_FILE) != text:
                raise TiebreakError(f"{DOCKET_FILE}: not what the kept verdicts say; python benchmarks/docket.py")
        else:
            files.write(DOCKET_FILE, text)
    except TiebreakError as error:
        sys.exit(f"docket: {error}")


if __name__ == "__main__":
    main()
