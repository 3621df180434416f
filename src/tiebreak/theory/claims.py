"""The claims ledger: every claim of the five reports (R0 to R4), its source and how it is decided. Data, no torch.

A claim is decided by an identity (a check that `tiebreak.theory.identities` computes at once), by a study that was run
(its verdict is in the docket or in a results folder of the user), or by a benchmark. Where both an identity and a study
are named, the identity decides, and the study measures what the claim means for quality.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from tiebreak.errors import TiebreakError, nearest
from tiebreak.verdict.docket import DOCKET_FILE, DocketEntry


@dataclass(frozen=True)
class Entry:
    """One claim. `identity`: the check with the same id decides it; `study`: the name of the study that does.

    A claim about speed is decided by a `benchmark` of the repository, which times both designs alone and in turns. The
    clocks in a study's records decide nothing: runs that are trained together share the measured time.
    """

    id: str
    text: str
    source: tuple[str, ...]
    identity: bool = False
    study: str | None = None
    benchmark: str | None = None
    command: str | None = None  # decides it where the built-in study does not do so alone


@dataclass(frozen=True)
class Outcome:
    """What a check found, with the numbers computed for it as evidence."""

    claim: str
    verdict: Literal["holds", "fails", "undecided"]
    sentence: str
    evidence: dict[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class ClaimStatus:
    """What is known of a claim: by its identity, by a kept or a user's result, or what would decide it.

    `entries` are results, the best evidence first; where an identity decides, they say what it means for quality.
    """

    entry: Entry
    verdict: Literal["holds", "fails", "undecided", "hint"]
    outcome: Outcome | None = None
    entries: tuple[DocketEntry, ...] = ()
    command: str | None = None  # runs the study or benchmark, where there is one
    terms: str = ""  # data, protocol and epochs of that command

    @property
    def best(self) -> DocketEntry | None:
        """The result that the status rests on; None where an identity decides or nothing is known."""
        return self.entries[0] if self.entries and self.outcome is None else None

    @property
    def mixed(self) -> bool:
        """Whether it rests on a hint, and another hint points the other way."""
        pointing = {each.outcome for each in self.entries if not each.quality} - {"undecided"}
        return self.verdict == "hint" and len(pointing) > 1

    @property
    def decided(self) -> bool:
        """Whether it holds or fails by the claim's own protocol."""
        return self.verdict in ("holds", "fails")


def _by_study(claim: str, text: str, source: str, study: str, command: str | None = None) -> Entry:
    return Entry(claim, text, tuple(source.split()), study=study, command=command)


def _by_identity(claim: str, text: str, source: str, study: str | None = None) -> Entry:
    return Entry(claim, text, tuple(source.split()), identity=True, study=study)


PTB = "tiebreak run {} --device cuda --precision bf16"
PTB_LONG, PTB_HELD_OUT = PTB.format("language-model --epochs 200"), PTB.format("benchmarks/ptb_held_out.toml")
ALL = "R0 R1 R2 R3 R4"
LEDGER: tuple[Entry, ...] = (
    _by_study("best-lr-sgd", "of 0.1, 0.01, 0.001, SGD trains the pooling CNN best at 0.01", "R0 R1 R2", "pooling"),
    _by_study("pool-beats-stride", "at equal parameters max pooling beats stride 2", "R0 R1", "pooling"),
    _by_study(
        "pool-invariance",
        "max pooling makes the net more robust to shift, rotation and scale",
        "R0 R1 R3",
        "pooling",
    ),
    _by_study("more-epochs-help", "accuracy would still improve past 15 epochs", "R0", "pooling"),
    _by_study("best-lr-adam", "of 1e-5, 5e-4, 1e-2, Adam does best at 5e-4", "R3", "kuzushiji"),
    _by_identity(
        "cnn-fewer-parameters", "a CNN needs O(HW) parameters where a fully connected net needs O(H²W²)", "R3"
    ),
    _by_study("cnn-beats-mlp", "CNNs beat fully connected nets on images", "R3", "spatial-structure"),
    _by_study(
        "cnn-needs-structure",
        "without spatial structure (pixels shuffled) the CNN loses that advantage",
        "R3",
        "spatial-structure",
    ),
    _by_identity("conv-is-linear", "convolution is a matrix product", "R3"),
    _by_study(
        "attention-decoder-wins",
        "the attention decoder beats the LSTM decoder in speech recognition, on loss and all three similarities",
        "R0 R1 R2",
        "speech-decoder",
    ),
    Entry("attention-decoder-faster", "and it trains faster", ("R0", "R1"), benchmark="benchmarks/decoders.py"),
    _by_study("metrics-agree", "the three similarities rise together", "R2", "speech-decoder"),
    _by_study("metric-order", "cosine > Jaccard > Damerau–Levenshtein", "R1", "speech-decoder"),
    _by_identity("cosine-semantic", "cosine similarity captures meaning", "R1"),
    _by_study(
        "attention-translates",
        "bilinear attention cuts the translation error from .50 to .36",
        "R3",
        "translation-attention",
    ),
    _by_study("beam-beats-greedy", "beam search translates better with the same model", "R3", "translation-attention"),
    _by_identity("softmax-quadratic", "softmax attention costs O(L²D)", ALL),
    _by_identity("taylor-linear", "Taylor attention costs O(LMD), linear in L", "R0 R1 R2"),
    _by_identity(
        "feature-size",
        "the feature map has C(D+K−1, K−1) entries (symmetric), ΣDⁿ (full), not D^{K−1}",
        "R0 R1 R2",
    ),
    _by_identity(
        "heads-equal",
        "multi-head has the parameters and asymptotic cost of single-head, but is slower",
        "R4",
        "heads",
    ),
    _by_identity("perplexity-is-exp-ce", "CE = log PP", "R4"),
    _by_study(
        "bigger-lm-better",
        "perplexity falls from 300 to 164 to 140 with size, at over 10× the time",
        "R4",
        "language-model",
        PTB_LONG,
    ),
    _by_study(
        "num-steps-neutral",
        "the window length barely matters",
        "R4",
        "language-model",
        PTB_LONG,
    ),
    _by_study(
        "lm-held-out",
        "164 and 140 are test perplexities",
        "R4",
        "language-model",
        PTB_HELD_OUT,
    ),
    _by_identity(
        "gcn-rows-normalised",
        "symmetric normalisation gives rows that sum to one",
        "R4",
        "graph-normalisation",
    ),
)


def statuses(
    outcomes: Mapping[str, Outcome],
    studies: Mapping[str, str],
    kept: Sequence[DocketEntry] = (),
    own: Sequence[DocketEntry] = (),
) -> list[ClaimStatus]:
    """Every claim in the ledger's order, from the identities, the kept results and the user's `own`, newest last.

    `studies` are the built-in studies with their data, protocol and epochs. A result of the user comes before kept ones
    that are as close to the claim's own terms.
    """
    check_known((each.claim for each in kept), str(DOCKET_FILE))
    found = []
    for entry in LEDGER:
        command = f"tiebreak run {entry.study}" if entry.study in studies else None
        if entry.benchmark is not None:
            command = f"python {entry.benchmark}"
        if entry.command is not None:
            command = entry.command
        entries = _ordered(entry.id, kept, own)
        outcome = outcomes[entry.id] if entry.identity else None
        verdict: Literal["holds", "fails", "undecided", "hint"] = "undecided"
        if outcome is not None:
            verdict = outcome.verdict
        elif entries and entries[0].outcome != "undecided":
            verdict = "hint" if entries[0].hint else entries[0].outcome
        terms = studies.get(entry.study or "", "") if entry.command is None else ""
        found.append(ClaimStatus(entry, verdict, outcome, entries, command, terms))
    return found


def check_known(claims: Iterable[str], where: str) -> None:
    """Refuse a claim that the ledger does not have: its result would never be shown."""
    for line in unknown_claims(claims):
        raise TiebreakError(f"{where}: {line}")


def unknown_claims(claims: Iterable[str]) -> list[str]:
    """A line for each claim that the ledger does not have."""
    known = [entry.id for entry in LEDGER]
    return [f"no claim {claim!r}; {nearest(claim, known)}" for claim in claims if claim not in known]


def _ordered(claim: str, kept: Sequence[DocketEntry], own: Sequence[DocketEntry]) -> tuple[DocketEntry, ...]:
    """The results on a claim, the best evidence first; of equal ones that of the user, and the newest of those."""
    mine = [each for each in reversed(own) if each.claim == claim]
    theirs = sorted((each for each in kept if each.claim == claim), key=lambda each: each.rank)
    return tuple(sorted((*mine, *theirs), key=lambda each: each.closeness))  # stable: mine first among equals


def to_json(found: list[ClaimStatus]) -> str:
    """The statuses as JSON, for programs."""
    rows = []
    for each in found:
        row = asdict(each.entry) | {"verdict": each.verdict, "command": each.command, "terms": each.terms}
        if each.outcome is not None:
            row |= {"sentence": each.outcome.sentence, "evidence": each.outcome.evidence}
        if each.best is not None:
            row |= {"leans": each.best.outcome, "mixed": each.mixed, "n": each.best.n, "data": each.best.data}
        rows.append(row | {"results": [item.model_dump(mode="json") for item in each.entries]})
    return json.dumps(rows, indent=2, ensure_ascii=False)
