from __future__ import annotations

import dataclasses
import hashlib
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import safetensors.torch
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from support.small_study import network_of, one_run, one_thread, split_of, write_data
from tiebreak import catalog
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Run
from tiebreak.results.checkpoint_file import CHECKPOINTS, POSITION, RUN, _describe
from tiebreak.results.record import CheckpointRecord
from tiebreak.train import checkpoint
from tiebreak.train.loop import Loop
from tiebreak.train.step import State, initial_state

TASK = catalog.TASKS["classify"]


class Normed(nn.Module):
    """A small network with batch normalisation: its buffers are part of the state."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 5, stride=4)
        self.norm = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 4, 3)
        self.out = nn.Linear(64, 2)

    def forward(self, images: Tensor) -> Tensor:
        return self.out(self.conv2(F.relu(self.norm(self.conv1(images)))).flatten(1))  # type: ignore[no-any-return]


class Twice(nn.Module):
    """Two biases where one would do, as in an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.ones(2))

    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1)[:, :2] + (self.one + self.two)


@pytest.fixture(name="run")
def _run(tmp_path: Path) -> Iterator[Run]:
    with one_thread():
        yield one_run(write_data(tmp_path / "data"))


def begun(run: Run, network: nn.Module) -> State:
    return initial_state(network, run)


def trained(run: Run, network: nn.Module, tmp_path: Path, epochs: int = 1) -> State:
    state = begun(run, network)
    for _ in range(epochs):
        Loop(TASK, network, run, state).train_epoch(
            split_of(run, tmp_path / "data", "train"), lambda share, steps: None
        )
    return state


def tensors(state: State) -> list[Tensor]:
    slots = [slot for memory in state.slots.values() for slot in memory.values()]
    return [*state.params.values(), *state.buffers.values(), *slots]


def path_of(folder: Path, record: CheckpointRecord) -> Path:
    return folder / CHECKPOINTS / record.file


@contextmanager
def disk_of(size: int) -> Iterator[None]:
    """Every write beyond `size` bytes of a file fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("design", ["cnn-strided", "with batch normalisation", "with channels last"])
def test_what_is_saved_comes_back_bit_for_bit_and_training_goes_on_equally(
    tmp_path: Path, run: Run, design: str
) -> None:
    def network() -> nn.Module:
        if design == "cnn-strided":
            return network_of(run, tmp_path / "data")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            made = Normed().double()
        if design.endswith("last"):
            made.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return made

    first, second = network(), network()
    state = trained(run, first, tmp_path)
    record = checkpoint.save(tmp_path, run, state)
    other = begun(run, second)
    checkpoint.restore(tmp_path, record, other)
    assert (other.epoch, other.steps) == (1, 12)
    assert len(tensors(state)) == 3 * len(state.params) + len(state.buffers)
    assert all(torch.equal(*pair) for pair in zip(tensors(state), tensors(other), strict=True))
    assert all(slot.any() for memory in other.slots.values() for slot in memory.values())
    for network_, its in ((first, state), (second, other)):
        Loop(TASK, network_, run, its).train_epoch(split_of(run, tmp_path / "data", "train"), lambda share, steps: None)
    assert all(torch.equal(*pair) for pair in zip(tensors(state), tensors(other), strict=True))
    assert all(torch.equal(*pair) for pair in zip(first.parameters(), second.parameters(), strict=True))


def test_the_record_says_what_was_saved_and_the_file_says_whose_it_is(tmp_path: Path, run: Run) -> None:
    record = checkpoint.save(tmp_path, run, trained(run, network_of(run, tmp_path / "data"), tmp_path))
    assert (record.identity, record.trajectory, record.epoch) == (run.identity, run.trajectory, 1)
    assert record.file == f"{run.identity}-1.safetensors"
    with safetensors.safe_open(path_of(tmp_path, record), "pt") as file:
        assert file.metadata() == {"run": f"{run.label} ({run.identity})"}
    assert [path.name for path in (tmp_path / CHECKPOINTS).iterdir()] == [record.file]


def test_equal_states_make_equal_files(tmp_path: Path, run: Run) -> None:
    state = trained(run, network_of(run, tmp_path / "data"), tmp_path)
    folders = [tmp_path / str(copy) for copy in range(10)]
    for folder in folders:
        folder.mkdir()
    records = [checkpoint.save(folder, run, state) for folder in folders]
    assert records == records[:1] * 10


def test_slots_that_share_their_memory_are_saved(tmp_path: Path, run: Run) -> None:
    state = trained(run, Twice().double(), tmp_path)  # both biases have the same gradient
    state.slots["two"] = state.slots["one"]
    record = checkpoint.save(tmp_path, run, state)
    other = begun(run, Twice().double())
    checkpoint.restore(tmp_path, record, other)
    assert all(torch.equal(*pair) for pair in zip(tensors(state), tensors(other), strict=True))


@pytest.mark.parametrize("damage", ["a flipped bit", "a truncated file", "an empty file"])
def test_a_damaged_file_is_refused_and_the_state_left_alone(tmp_path: Path, run: Run, damage: str) -> None:
    network = network_of(run, tmp_path / "data")
    record = checkpoint.save(tmp_path, run, trained(run, network, tmp_path))
    path = path_of(tmp_path, record)
    content = bytearray(path.read_bytes())
    if damage == "a flipped bit":
        content[len(content) // 2] ^= 1
    path.write_bytes(content[: {"a flipped bit": None, "a truncated file": -7, "an empty file": 0}[damage]])
    state = begun(run, network_of(run, tmp_path / "data"))
    before = [tensor.clone() for tensor in tensors(state)]
    with pytest.raises(TiebreakError) as caught:
        checkpoint.restore(tmp_path, record, state)
    assert str(caught.value) == f"{path}: damaged, its sha256 is not the recorded one"
    assert all(torch.equal(*pair) for pair in zip(before, tensors(state), strict=True))
    assert (state.epoch, state.steps) == (0, 0)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path, run: Run) -> None:
    state = begun(run, network_of(run, tmp_path / "data"))
    record = dataclasses.replace(checkpoint.save(tmp_path, run, state), identity="another")
    with pytest.raises(TiebreakError, match=f"another run.*{run.identity}.*not of another"):
        checkpoint.restore(tmp_path, record, state)


def test_a_results_folder_that_is_gone_is_not_made_again(tmp_path: Path, run: Run) -> None:
    state = begun(run, network_of(run, tmp_path / "data"))
    with pytest.raises(TiebreakError, match="gone: removed"):
        checkpoint.save(tmp_path / "gone", run, state)
    assert not (tmp_path / "gone").exists()


def test_a_missing_file_is_named(tmp_path: Path, run: Run) -> None:
    state = begun(run, network_of(run, tmp_path / "data"))
    record = dataclasses.replace(checkpoint.save(tmp_path, run, state), file="nowhere.safetensors")
    with pytest.raises(TiebreakError, match=r"nowhere\.safetensors: missing"):
        checkpoint.restore(tmp_path, record, state)


def test_a_full_disk_leaves_the_old_checkpoint(tmp_path: Path, run: Run) -> None:
    network = network_of(run, tmp_path / "data")
    state = trained(run, network, tmp_path)
    record = checkpoint.save(tmp_path, run, state)
    old = path_of(tmp_path, record).read_bytes()
    next(iter(state.params.values())).add_(1)
    with disk_of(len(old) // 2), pytest.raises(TiebreakError, match=r"cannot be written: File too large"):
        checkpoint.save(tmp_path, run, state)
    assert path_of(tmp_path, record).read_bytes() == old
    assert [path.name for path in (tmp_path / CHECKPOINTS).iterdir()] == [record.file]
    checkpoint.restore(tmp_path, record, state)


def test_a_checkpoint_of_another_epoch_is_refused(tmp_path: Path, run: Run) -> None:
    network = network_of(run, tmp_path / "data")
    record = checkpoint.save(tmp_path, run, trained(run, network, tmp_path))
    state = begun(run, network_of(run, tmp_path / "data"))
    with pytest.raises(TiebreakError, match="holds epoch 1, not the recorded 2"):
        checkpoint.restore(tmp_path, dataclasses.replace(record, epoch=2), state)
    assert (state.epoch, state.steps) == (0, 0)


def test_frozen_parameters_are_neither_trained_nor_kept(tmp_path: Path, run: Run) -> None:
    network = network_of(run, tmp_path / "data")
    frozen = next(iter(network.parameters())).requires_grad_(False)
    before = frozen.clone()
    state = trained(run, network, tmp_path)
    assert torch.equal(frozen, before)
    assert len(state.params) == len(list(network.parameters())) - 1


@pytest.mark.parametrize("position", [torch.tensor([1, 12, 3]), torch.tensor([1.0, 12.0], dtype=torch.float64)])
def test_a_checkpoint_without_its_position_is_one_line(tmp_path: Path, run: Run, position: Tensor) -> None:
    """A stranger's file, with the digest that belongs to it."""
    state = begun(run, Normed().double())
    record = checkpoint.save(tmp_path, run, state)
    path = path_of(tmp_path, record)
    stored = safetensors.torch.load(path.read_bytes())
    content = safetensors.torch.save({**stored, POSITION: position}, {RUN: f"({run.identity})"})
    path.write_bytes(content)
    changed = dataclasses.replace(record, sha256=hashlib.sha256(content).hexdigest(), epoch=_describe(content)[1])
    with pytest.raises(TiebreakError, match="epoch and steps"):
        checkpoint.restore(tmp_path, changed, state)


def test_a_state_of_another_type_of_number_is_refused(run: Run, tmp_path: Path) -> None:
    """Copying it would round every number without a word."""
    (tmp_path / CHECKPOINTS).mkdir()
    record = checkpoint.save(tmp_path, run, begun(run, Twice().double()))
    with pytest.raises(TiebreakError, match="type"):
        checkpoint.restore(tmp_path, record, begun(run, Twice()))
