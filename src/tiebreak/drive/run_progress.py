"""How far each run is and how fast it goes, kept from the messages of training: for the screen and for the folder."""

from __future__ import annotations

from tiebreak.drive.messages import EpochDone, Message, PendingRun, Progress, RunEnded, TrainingStarted
from tiebreak.results.record import EpochRecord, Status


class RunProgress:
    """The runs that are being trained, as of the last message."""

    def __init__(self) -> None:
        self.runs: dict[str, PendingRun] = {}  # by identity
        self.steps, self.unit = 1, "epoch"
        self.epochs: dict[str, float] = {}  # identity -> epochs done
        self.rates: dict[str, float] = {}  # identity -> its share of the steps per second, while it is trained
        self.ended: dict[str, Status] = {}
        self._paths: dict[str, list[str]] = {}  # trajectory -> identities

    def on_message(self, message: Message) -> bool:
        """Take in a message. Whether it says that a run has come further."""
        if isinstance(message, TrainingStarted):
            self._start(message)
        elif isinstance(message, Progress):
            self._reach({one: message.epochs for one in message.identities if one in self.runs}, message.rate)
            return True
        elif isinstance(message, EpochDone):
            known = [record for record in message.records if record.trajectory in self._paths]
            reached = {self._identity(record): float(record.epoch) for record in known}
            seconds = sum(record.seconds.get("train", 0.0) for record in message.records)
            self._reach(reached, len(reached) * self.steps / seconds if seconds else 0.0)
            return True
        elif isinstance(message, RunEnded):
            identity = message.record.identity
            self.epochs[identity], self.ended[identity] = float(self.runs[identity].epochs), message.record.status
            self.rates.pop(identity, None)
            return True
        return False

    def _start(self, started: TrainingStarted) -> None:
        self.runs, self.steps, self.unit = dict(started.runs), started.steps, started.unit
        self.epochs = {identity: float(run.done) for identity, run in started.runs.items()}
        self.rates, self.ended, self._paths = {}, {}, {}
        for identity, run in started.runs.items():
            self._paths.setdefault(run.trajectory, []).append(identity)

    def _identity(self, record: EpochRecord) -> str:
        """The run that an epoch belongs to; of two with one trajectory, the one that is nearest before it."""
        return max(
            self._paths[record.trajectory],
            key=lambda one: (one not in self.ended, self.epochs[one] < record.epoch, self.epochs[one]),
        )

    def _reach(self, epochs: dict[str, float], rate: float) -> None:
        self.epochs |= epochs
        self.rates |= dict.fromkeys(epochs, rate / max(1, len(epochs)))

    def share(self) -> float:
        """The part of the work that is done, by the cost of epochs."""
        if len(self.ended) == len(self.runs):
            return 1.0
        cost = sum(run.cost * (run.epochs - run.done) for run in self.runs.values())
        spent = sum(run.cost * (self.epochs[identity] - run.done) for identity, run in self.runs.items())
        return max(0.0, spent / cost) if cost else 0.0

    def cohorts(self) -> dict[str, list[str]]:
        """The runs that are being trained, by the name of their cohort, in the order in which they began."""
        groups: dict[str, list[str]] = {}
        for identity in self.rates:
            groups.setdefault(self.runs[identity].cohort, []).append(identity)
        return groups
