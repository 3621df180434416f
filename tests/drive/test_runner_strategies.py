"""Which jobs the driver makes of cohorts, with workers that are played by the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from support.small_study import small_study, train_plan, write_data
from tiebreak.drive import runner
from tiebreak.drive.jobs import StrategyOption
from tiebreak.drive.machine import Machine
from tiebreak.drive.messages import Job, Message, Note, RunEnded, StepsTimed, StrategyMeasured, TrainingStarted
from tiebreak.errors import TiebreakError
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Plan, Run, evaluation_key
from tiebreak.results.record import Choice, FinalRecord, RunRecord, StepTimes
from tiebreak.results.store import Store

Answer = Callable[[Run], dict[str, Any]]  # what a measurement says of a cohort, by its first run


def fused(run: Run) -> dict[str, Any]:
    return {"strategy": "fused", "fused_ms": 0.5}


def slower(run: Run) -> dict[str, Any]:
    return {"strategy": "loop", "fused_ms": 2.0}


def cannot(run: Run) -> dict[str, Any]:
    return {"strategy": "loop", "fused_ms": None, "reason": "it looks at values"}


def one_cannot(run: Run) -> dict[str, Any]:
    return cannot(run) if run.design == "cnn-pool" else fused(run)


def one_fails(run: Run) -> dict[str, Any]:
    return {"failed": "ValueError: no"} if run.design == "cnn-pool" else fused(run)


class Workers:
    """Plays the pool: answers measurements as it was told to, and ends every run that is to be trained."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.jobs: list[Job] = []
        self.at_most: list[int | None] = []
        self.slots = 1

    def __call__(self, workers: int, device: str) -> Self:
        self.slots = workers
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def run(self, jobs: Sequence[Job], at_most: int | None = None) -> Iterator[list[Message]]:
        for job in jobs:
            self.jobs.append(job)
            self.at_most.append(at_most)
            runs = [Run.model_validate(content) for content in job.runs]
            assert (len({run.cohort for run in runs}) == 1) != (job.work == "time")
            assert len(job.checkpoints) == len(runs)
            answer = self.answer(runs[0]) if job.work == "measure" else {}
            if job.work == "time":
                yield [StepsTimed(times=tuple(times_of(run, job) for run in runs))]
            elif job.work == "train" or "failed" in answer:
                yield [ended(run, answer.get("failed", "")) for run in runs]
            else:
                base = {"threads": 1, "runs": len(runs), "loop_ms": 1.0, "fits": 100}
                choice = Choice(cohort=runs[0].cohort, device=job.device_label, **{**base, **answer})
                yield [StrategyMeasured(choice=choice)]

    def trained(self) -> list[tuple[str, list[tuple[str, int]]]]:
        """The training jobs: strategy, and the runs."""
        return [
            (job.strategy, [(content["design"], content["seed"]) for content in job.runs])
            for job in self.jobs
            if job.work == "train"
        ]

    def measured(self) -> list[str]:
        """The designs that were measured; nothing else may run meanwhile."""
        assert all(limit == 1 for job, limit in zip(self.jobs, self.at_most, strict=True) if job.work == "measure")
        kinds = [job.work for job in self.jobs]
        assert kinds == sorted(kinds)  # all measurements before all training
        return [job.runs[0]["design"] for job in self.jobs if job.work == "measure"]


def times_of(run: Run, job: Job) -> StepTimes:
    return StepTimes(cohort=run.cohort, device=job.device_label, group="all", ms=(1.0,) * 6, steps=4, memory_bytes=1000)


def ended(run: Run, reason: str) -> RunEnded:
    record = RunRecord(
        identity=run.identity,
        trajectory=run.trajectory,
        status="failed" if reason else "done",
        epoch=0 if reason else run.epochs,
        reason=reason,
    )
    finals = [
        FinalRecord(identity=run.identity, evaluation=evaluation_key(how), metrics={}, outcomes={}, seconds=0.0)
        for how in run.evaluations
    ]
    return RunEnded(record=record, finals=() if reason else tuple(finals))


@pytest.fixture(scope="module", name="data")
def _data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(name="do")
def _do(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Workers, list[Message]]]:
    def do(answer: Answer, seeds: int, strategy: StrategyOption = "auto", **more: Any) -> tuple[Workers, list[Message]]:
        workers, heard = Workers(answer), list[Message]()
        monkeypatch.setattr(runner, "Pool", workers)
        machine = Machine(data_dir=data, strategy=strategy, **{"workers": 1, **more})
        train_plan(plan_of(data, seeds), tmp_path, machine, heard.append)
        return workers, heard

    return do


def plan_of(data: Path, seeds: int) -> Plan:
    return make_plan(small_study(seeds=seeds), data)


def choices(folder: Path) -> dict[str, Choice]:
    with closing(Store.open(folder)) as store:
        return {device: choice for (_, device), choice in store.choices().items()}


def test_cohorts_are_measured_one_at_a_time_and_then_trained(do: Any, tmp_path: Path) -> None:
    workers, heard = do(one_cannot, seeds=2)
    assert workers.measured() == ["cnn-pool", "cnn-strided"]
    assert workers.trained() == [
        ("loop", [("cnn-pool", 0)]),
        ("loop", [("cnn-pool", 1)]),
        ("fused", [("cnn-strided", 0), ("cnn-strided", 1)]),
    ]
    first, *told, begun = heard[: heard.index(next(item for item in heard if isinstance(item, TrainingStarted))) + 1]
    assert isinstance(first, Note)
    assert "timing cnn-pool, cnn-strided" in first.text
    pool, strided, turns = (item.text for item in told if isinstance(item, Note))
    assert "cnn-pool and cnn-strided in turns" in turns
    assert pool.startswith("cnn-pool: 2 runs")
    assert "it looks at values" in pool
    assert strided.startswith("cnn-strided: 2 runs fused, 2.0 times as fast")
    assert [(run.cohort, run.strategy, run.cost) for run in begun.runs.values()] == [
        *[("cnn-pool", "loop", 1.0)] * 2,
        *[("cnn-strided", "fused", 0.5)] * 2,
    ]
    assert (begun.steps, begun.workers) == (12, 1)


def test_arms_are_timed_in_turns_once_for_a_device_and_again_with_another_arm(
    do: Any, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def timed(workers: Workers) -> list[list[str]]:
        return [[run["design"] for run in job.runs] for job in workers.jobs if job.work == "time"]

    both = ["cnn-pool", "cnn-strided"]
    workers, _ = do(fused, seeds=2)
    assert timed(workers) == [both]
    assert all(0 < job.seconds <= 10 for job in workers.jobs if job.work == "time")
    with closing(Store.open(tmp_path)) as store:
        assert {times.ms for times in store.step_times().values()} == {(1.0,) * 6}
    assert timed(do(fused, seeds=5)[0]) == []
    assert timed(do(fused, seeds=7, device="cuda")[0]) == [both]
    third = [{"name": name, "design": name} for name in (*both, "mlp")]
    monkeypatch.setitem(
        globals(), "small_study", partial(small_study, arms=third, comparisons=[{"a": "mlp", "b": "cnn-pool"}])
    )
    assert timed(do(fused, seeds=2)[0]) == [[*both, "mlp"]]


@pytest.mark.parametrize(("answer", "strategy"), [(fused, "fused"), (slower, "loop")])
def test_what_was_measured_is_kept_for_more_seeds(do: Any, answer: Answer, strategy: str) -> None:
    do(answer, seeds=2)
    workers, heard = do(answer, seeds=5)
    assert workers.measured() == []
    assert not [item for item in heard if isinstance(item, Note)]
    assert {how for how, _ in workers.trained()} == {strategy}
    assert sorted(run for _, runs in workers.trained() for run in runs) == [
        (design, seed) for design in ("cnn-pool", "cnn-strided") for seed in (2, 3, 4)
    ]


def test_a_single_run_that_is_left_keeps_the_strategy_of_its_cohort(do: Any) -> None:
    do(fused, seeds=2)
    workers, _ = do(fused, seeds=3)
    assert workers.trained() == [("fused", [("cnn-pool", 2)]), ("fused", [("cnn-strided", 2)])]


def test_another_device_is_measured_anew(do: Any, tmp_path: Path) -> None:
    do(fused, seeds=2)
    workers, _ = do(slower, seeds=4, device="cuda")
    assert workers.measured() == ["cnn-pool", "cnn-strided"]
    assert {device: choice.strategy for device, choice in choices(tmp_path).items()} == {"cpu": "fused", "cuda": "loop"}


def test_another_precision_is_measured_anew_and_every_job_has_it(do: Any, tmp_path: Path) -> None:
    do(fused, seeds=2, device="cuda")
    workers, _ = do(slower, seeds=4, device="cuda", precision="tf32")
    assert workers.measured() == ["cnn-pool", "cnn-strided"]
    assert {job.precision for job in workers.jobs} == {"tf32"}
    assert {place: choice.strategy for place, choice in choices(tmp_path).items()} == {
        "cuda": "fused",
        "cuda, tf32": "loop",
    }


@pytest.mark.parametrize(("seeds", "strategy"), [(1, "auto"), (1, "loop"), (2, "loop")])
def test_nothing_is_measured_for_lone_runs_or_when_a_loop_is_asked_for(
    do: Any, tmp_path: Path, seeds: int, strategy: StrategyOption
) -> None:
    workers, heard = do(fused, seeds=seeds, strategy=strategy)
    assert workers.measured() == []
    assert [how for how, _ in workers.trained()] == ["loop"] * 2 * seeds
    assert isinstance(heard[0], TrainingStarted)
    assert choices(tmp_path) == {}


@pytest.mark.parametrize("seeds", [1, 3])
def test_fused_can_be_forced_and_is_not_kept_as_the_choice(do: Any, tmp_path: Path, seeds: int) -> None:
    workers, heard = do(slower, seeds=seeds, strategy="fused")
    assert workers.measured() == ["cnn-pool", "cnn-strided"]  # for memory
    assert [(how, len(runs)) for how, runs in workers.trained()] == [("fused", seeds)] * 2
    assert "fused, 0.5 times as fast" in next(item.text for item in heard[1:] if isinstance(item, Note))
    assert choices(tmp_path)["cpu"].strategy == "loop"
    workers, _ = do(slower, seeds=5)
    assert {how for how, _ in workers.trained()} == {"loop"}


def test_what_cannot_be_fused_cannot_be_forced(do: Any, tmp_path: Path) -> None:
    for _ in range(2):  # the second time the answer is known
        with pytest.raises(TiebreakError, match=r"cnn-pool cannot be fused: it looks at values.*--strategy auto"):
            do(one_cannot, seeds=2, strategy="fused")
    with closing(Store.open(tmp_path)) as store:
        assert store.records().runs == {}


def test_what_the_plan_cannot_fuse_is_refused_before_anything_is_timed(
    do: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = runner.Driver.__init__

    def told(driver: Any, plan: Any, *rest: Any) -> None:
        arms = [arm.model_copy(update={"cannot_fuse": "it looks at values"}) for arm in plan.arms]
        make(driver, plan.model_copy(update={"arms": (plan.arms[0], *arms[1:])}), *rest)

    monkeypatch.setattr(runner.Driver, "__init__", told)
    monkeypatch.setattr(Workers, "run", None)  # nothing is worked on
    with pytest.raises(TiebreakError, match=r"cannot be fused: it looks at values.*--strategy auto"):
        do(fused, seeds=2, strategy="fused")


def test_runs_are_shared_out_to_all_processes(do: Any) -> None:
    workers, heard = do(fused, seeds=6, workers=2)
    assert [len(runs) for _, runs in workers.trained()] == [3, 3, 3, 3]
    begun = next(item for item in heard if isinstance(item, TrainingStarted))
    assert begun.workers == 2


def test_a_design_that_fails_while_it_is_measured_is_a_failed_run_as_ever(do: Any, data: Path, tmp_path: Path) -> None:
    workers, heard = do(one_fails, seeds=2)
    assert workers.trained() == [("fused", [("cnn-strided", 0), ("cnn-strided", 1)])]
    kinds = [type(item) for item in heard]
    assert kinds.index(TrainingStarted) < kinds.index(
        RunEnded
    )  # whoever listens knows the runs before it hears of their end
    begun = next(item for item in heard if isinstance(item, TrainingStarted))
    ends = {item.record.identity: item.record for item in heard if isinstance(item, RunEnded)}
    assert ends.keys() == begun.runs.keys() == plan_of(data, 2).runs.keys()
    failed = [begun.runs[identity].cohort for identity, record in ends.items() if record.status == "failed"]
    assert failed == ["cnn-pool"] * 2
    with closing(Store.open(tmp_path)) as store:
        assert {record.reason for record in store.records().runs.values()} == {"ValueError: no", ""}
        assert len(store.choices()) == 1
    workers, _ = do(fused, seeds=2)  # what failed is tried again
    assert workers.measured() == ["cnn-pool"]
    assert [how for how, _ in workers.trained()] == ["fused"]
