"""Readers that use the libraries of other tools, on files that these libraries wrote: `make extras-test`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.tracker_files import ARMS, SCORES, SEEDS, value
from tiebreak.errors import TiebreakError
from tiebreak.exchange.optuna_storage import read_optuna
from tiebreak.exchange.parquet_table import read_parquet
from tiebreak.exchange.pick import Columns
from tiebreak.exchange.score_sources import find_source, read_score_table
from tiebreak.exchange.tensorboard_events import read_tensorboard

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("ignore")]  # warnings of other people's code
RUNS = [(arm, seed) for arm in ARMS for seed in range(SEEDS)]


def check(path: Path, source: str, columns: Columns) -> list[str]:
    before = sorted(path.parent.rglob("*"))
    assert find_source(path) == source
    found = read_score_table(path, columns)
    assert found.sets[""] == {arm: pytest.approx(scores, rel=1e-6) for arm, scores in SCORES.items()}
    assert sorted(path.parent.rglob("*")) == before  # reading leaves nothing behind
    return found.notes


def test_parquet(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {
        "model": [arm for arm, _ in RUNS],
        "seed": [seed for _, seed in RUNS],
        "acc": [value(*run) for run in RUNS],
    }
    parquet.write_table(arrow.table({**columns, "lists": [[1]] * len(RUNS)}), tmp_path / "t.parquet")
    check(tmp_path / "t.parquet", "parquet", Columns(arm="model", score="acc"))
    many = arrow.DictionaryArray.from_arrays(arrow.array([0] * 200_000, arrow.int32()), ["x" * 1_000_000])
    parquet.write_table(arrow.table({"arm": many}), tmp_path / "bomb.parquet")  # 200 GB as texts of their own
    assert len({id(cells[0]) for _, cells in read_parquet(tmp_path / "bomb.parquet").rows}) == 1
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(TiebreakError, match=r"bad\.parquet"):
        read_parquet(tmp_path / "bad.parquet")


def test_tensorboard_folders_and_hparams(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    for arm, seed in RUNS:
        with SummaryWriter(tmp_path / "tb" / arm / f"seed_{seed}") as writer:
            for step in range(3):
                writer.add_scalar("val/acc", value(arm, seed) - 0.1 * (2 - step), step)
        with SummaryWriter(tmp_path / "hp" / f"x{arm}{seed}") as writer:
            writer.add_hparams({"arch": arm, "seed": seed}, {"hp/acc": value(arm, seed)}, run_name="hp")
    check(tmp_path / "tb", "tensorboard", Columns(score="val/acc"))
    check(tmp_path / "hp", "tensorboard", Columns(arm="arch", score="hp/acc"))
    with pytest.raises(TiebreakError, match=r"no column 'acc'.*val/acc"):
        read_score_table(tmp_path / "tb", Columns(score="acc"))


def test_damaged_event_files_are_one_line(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    (tmp_path / "events.out.tfevents.1.x").write_bytes(b"\x18" + b"x" * 200)
    with pytest.raises(TiebreakError, match=r"no scalar|cannot be read"):
        read_tensorboard(tmp_path)


def test_an_earlier_value_is_not_taken_for_the_last_where_a_record_is_damaged(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path / "a" / "seed_0") as writer:
        for step in range(3):
            writer.add_scalar("acc", 0.1 * step, step)
    (path,) = (tmp_path / "a" / "seed_0").iterdir()
    assert read_tensorboard(tmp_path)
    content = bytearray(path.read_bytes())
    path.write_bytes(content[:-6])
    assert "cut off" in read_tensorboard(tmp_path).notes[-1]
    content[-6] ^= 4
    path.write_bytes(content)
    with pytest.raises(TiebreakError, match=r"seed_0.*damaged: record 4 of 4"):
        read_tensorboard(tmp_path)


def test_optuna_storages(tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "journal.log"))
    for storage in (f"sqlite:///{tmp_path / 'o.db'}", optuna.storages.JournalStorage(backend)):
        for arm in ARMS:
            study = optuna.create_study(study_name=arm, storage=storage)
            study.optimize(lambda trial, arm=arm: value(arm, trial.number), n_trials=SEEDS)
            study.ask()  # a trial that never ends
    for name in ("o.db", "journal.log"):
        notes = check(tmp_path / name, "optuna", Columns())
        assert any("2 running" in note for note in notes)
    (tmp_path / "bad.log").write_text('{"op_code": 99}\n')
    with pytest.raises(TiebreakError, match=r"bad\.log"):
        read_optuna(tmp_path / "bad.log")


def test_an_mlflow_database(tmp_path: Path) -> None:
    tracking = pytest.importorskip("mlflow.tracking")
    client = tracking.MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'm.db'}")
    experiment = client.create_experiment("arch", artifact_location=str(tmp_path))
    for arm, seed in RUNS:
        run = client.create_run(experiment, run_name=f"{arm}-{seed}").info.run_id
        client.log_param(run, "arch", arm)
        for step in range(3):
            client.log_metric(run, "val/acc", value(arm, seed) - 0.1 * (2 - step), step=step)
        client.set_terminated(run)
    client.create_run(experiment, run_name="vit-20")
    notes = check(tmp_path / "m.db", "mlflow", Columns(arm="arch"))
    assert any("1 run" in note for note in notes)
