from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tiebreak.drive.messages import (
    Abort,
    ClusterState,
    EpochDone,
    ExhibitsMade,
    Job,
    MachineState,
    Message,
    Note,
    PendingRun,
    Progress,
    RunEnded,
    StepsTimed,
    StrategyMeasured,
    TrainingStarted,
    decode,
    decode_job,
    encode,
    encode_job,
)
from tiebreak.results.record import (
    CheckpointRecord,
    Choice,
    EpochRecord,
    ExhibitRecord,
    FinalRecord,
    RunRecord,
    StepTimes,
)

TEXT = st.text(max_size=20)
COUNT = st.integers(0, 10**6)
NUMBERS = st.dictionaries(TEXT, st.floats(), max_size=3)  # NaN and infinities too
OUTCOMES = st.dictionaries(
    st.sampled_from(["accuracy", "loss", "edit distance"]),
    hnp.arrays(np.float32, st.integers(0, 6), elements=st.floats(width=32)),
    max_size=2,
)
DTYPES: st.SearchStrategy[np.dtype[Any]] = st.sampled_from([np.dtype(code) for code in ("u1", "i8", "f2", "U5")])
ARRAYS = OUTCOMES | st.dictionaries(
    st.sampled_from(["images", "class_names"]), hnp.arrays(DTYPES, hnp.array_shapes(max_side=3)), max_size=2
)
CHECKPOINT = st.builds(CheckpointRecord, identity=TEXT, trajectory=TEXT, epoch=COUNT, file=TEXT, sha256=TEXT)
EPOCH = st.builds(EpochRecord, trajectory=TEXT, epoch=COUNT, metrics=NUMBERS, seconds=NUMBERS)
RUN = st.builds(
    RunRecord,
    identity=TEXT,
    trajectory=TEXT,
    status=st.sampled_from(["done", "diverged", "failed"]),
    epoch=COUNT,
    reason=TEXT,
    provenance=st.dictionaries(TEXT, TEXT, max_size=3),
)
FINAL = st.builds(
    FinalRecord, identity=TEXT, evaluation=TEXT, metrics=NUMBERS, outcomes=OUTCOMES, seconds=st.floats(0, 9)
)
STRATEGY = st.sampled_from(["loop", "fused"])
CHOICE = st.builds(
    Choice,
    cohort=TEXT,
    device=TEXT,
    strategy=STRATEGY,
    threads=COUNT,
    runs=COUNT,
    loop_ms=st.floats(0, 9),
    fused_ms=st.none() | st.floats(0, 9),
    fits=COUNT,
    reason=TEXT,
)
PENDING = st.builds(
    PendingRun,
    label=TEXT,
    cohort=TEXT,
    trajectory=TEXT,
    epochs=COUNT,
    done=COUNT,
    strategy=STRATEGY,
    cost=st.floats(0, 9),
)
MESSAGES: dict[str, st.SearchStrategy[Message]] = {
    "TrainingStarted": st.builds(
        TrainingStarted, runs=st.dictionaries(TEXT, PENDING, max_size=3), steps=COUNT, stored=COUNT, workers=COUNT
    ),
    "Progress": st.builds(
        Progress,
        identities=st.lists(TEXT, max_size=3).map(tuple),
        epochs=st.floats(0, 100),
        rate=st.floats(0, 1e6),
    ),
    "StrategyMeasured": st.builds(StrategyMeasured, choice=CHOICE),
    "StepsTimed": st.builds(
        StepsTimed,
        times=st.lists(
            st.builds(
                StepTimes,
                cohort=TEXT,
                device=TEXT,
                group=TEXT,
                ms=st.lists(st.floats(1e-3, 1e3), max_size=3).map(tuple),
                steps=COUNT,
                memory_bytes=st.none() | COUNT,
            ),
            max_size=2,
        ).map(tuple),
    ),
    "ClusterState": st.builds(
        ClusterState,
        machines=st.lists(
            st.builds(
                MachineState, name=TEXT, cores=COUNT, cores_in_use=COUNT, gpus=COUNT, jobs=COUNT, alive=st.booleans()
            ),
            max_size=2,
        ).map(tuple),
    ),
    "EpochDone": st.builds(
        EpochDone,
        records=st.lists(EPOCH, max_size=3).map(tuple),
        checkpoints=st.lists(CHECKPOINT, max_size=3).map(tuple),  # none for an epoch that was not saved
    ),
    "RunEnded": st.builds(RunEnded, record=RUN, finals=st.lists(FINAL, max_size=2).map(tuple)),
    "ExhibitsMade": TEXT.flatmap(
        lambda identity: st.builds(
            ExhibitsMade,
            identity=st.just(identity),
            exhibits=st.lists(
                st.builds(ExhibitRecord, identity=st.just(identity), name=TEXT, arrays=ARRAYS), max_size=2
            ).map(tuple),
        )
    ),
    "Note": st.builds(Note, text=TEXT),
    "Abort": st.builds(Abort, text=TEXT),
}
JOBS = st.builds(
    Job,
    runs=st.lists(
        st.dictionaries(TEXT, st.none() | COUNT | TEXT | st.lists(TEXT, max_size=2) | NUMBERS, max_size=4), max_size=3
    ).map(tuple),
    folder=TEXT,
    data_dir=st.none() | TEXT,
    device=TEXT,
    work=st.sampled_from(["train", "measure", "time", "exhibits"]),
    strategy=STRATEGY,
    designs_from=st.none() | TEXT,
    checkpoints=st.lists(st.lists(CHECKPOINT, max_size=3).map(tuple), max_size=3).map(tuple),
    examples=st.lists(COUNT, max_size=3).map(tuple),
    checksums=st.none() | TEXT,
    seconds=st.floats(0, 10),
)


def written(value: Any) -> Any:
    """The value with every number and array spelled out, so that NaN equals NaN and nothing is rounded."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: written(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return {key: written(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(written(item) for item in value)
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tobytes())
    return repr(value)


def test_every_kind_is_tried() -> None:
    assert set(MESSAGES) == {kind.__name__ for kind in get_args(Message)}


@given(st.one_of(*MESSAGES.values()))
def test_a_message_is_one_line_and_comes_back(message: Message) -> None:
    line = encode(message)
    assert line.isascii()
    assert "\n" not in line
    assert line.strip()  # an empty line means: ready for the next job
    assert written(decode(line)) == written(message)


@given(JOBS)
def test_a_job_is_one_line_and_comes_back(job: Job) -> None:
    line = encode_job(job)
    assert line.isascii()
    assert "\n" not in line
    assert written(decode_job(line)) == written(job)


def test_a_folder_whose_name_is_not_text_comes_back() -> None:
    job = Job(runs=({},), folder=b"r\xe9sultats".decode("utf-8", "surrogateescape"), data_dir=None, device="cpu")
    assert decode_job(encode_job(job)) == job


def test_a_line_says_its_kind() -> None:
    assert json.loads(encode(Note(text="hello"))) == {"kind": "Note", "text": "hello", "once": ""}
