"""The interface of each family of designs: the shapes its networks are built for, and what they are called with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tiebreak.errors import TiebreakError
from tiebreak.layers.batchnorm import swap_batchnorm
from tiebreak.layers.dropout import swap_dropout
from tiebreak.layers.functional_dropout import key_functions
from tiebreak.layers.global_generators import seeded
from tiebreak.layers.swapped_recurrent import swap_recurrent
from tiebreak.layers.uncompiled import leave_uncompiled
from tiebreak.models.global_settings import unchanged_settings
from tiebreak.models.own_shape import Tensors
from tiebreak.models.user_network_checks import check_network, unchanged_tensors
from tiebreak.study.registry import OWN_TASK, Scalar

PADDING, START, END, UNKNOWN = 0, 1, 2, 3  # the first symbols of every vocabulary of sentences

_CALLS_FUNCTIONS: dict[tuple[Any, ...], bool] = {}  # the users' networks that passed the checks in this process


@dataclass(frozen=True, kw_only=True)
class Images:
    """Shape of a classifier: images [B, channels, height, width] in, logits [B, classes] out."""

    channels: int
    height: int
    width: int
    classes: int

    def inputs(self, batch: int) -> tuple[Tensor, ...]:
        """Example inputs of a network."""
        return (torch.zeros(batch, self.channels, self.height, self.width),)

    def output(self, batch: int) -> tuple[int, ...]:
        """The shape of its logits."""
        return (batch, self.classes)


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """Shape of a translator: source [B, S] and target [B, T] as symbols, logits [B, T, targets] out.

    Both vocabularies begin with padding 0, start 1, end 2 and unknown 3. The target that a network sees begins with
    start; what it gives at each place is about the symbol after it.
    """

    sources: int  # symbols, the four special ones included
    targets: int
    source_length: int
    target_length: int

    def inputs(self, batch: int) -> tuple[Tensor, ...]:
        """Example inputs of a network."""
        lengths = (self.source_length, self.target_length)
        source, target = (torch.ones(batch, length, dtype=torch.long) for length in lengths)
        return source, target

    def output(self, batch: int) -> tuple[int, ...]:
        """The shape of its logits."""
        return (batch, self.target_length, self.targets)


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Shape of a node classifier: a whole graph in, logits [nodes, classes] of all nodes out.

    A network is called with rows, columns, values and order [entries], source and target [edges]. Feature `columns` of
    node `rows` is `values`, all others are 0; entries are sorted by row, and `order` sorts them by column. An edge
    leads from `source` to `target`, both ways, sorted by target; there are no loops.
    """

    nodes: int
    features: int
    classes: int
    edges: int  # each counted both ways
    entries: int  # features that are not 0

    def inputs(self, batch: int) -> tuple[Tensor, ...]:
        """Example inputs: a graph of these sizes, whatever the batch."""
        each, both = torch.arange(self.entries), torch.arange(self.edges)
        columns = each % self.features
        features = (each * self.nodes // max(1, self.entries), columns, torch.ones(self.entries), columns.argsort())
        return *features, both % self.nodes, both * self.nodes // max(1, self.edges)

    def output(self, batch: int) -> tuple[int, ...]:
        """The shape of its logits."""
        return (self.nodes, self.classes)


@dataclass(frozen=True, kw_only=True)
class Words:
    """Shape of a language model: tokens [B, S, T] in, logits [B, S, T, words] for the token after each out.

    An example is a window of T tokens of S streams that are read side by side; the next example goes on where it ends.
    What a network carries from one to the next is a `Carry`. B is 1 in training, see `tiebreak.layers.carry`.
    """

    words: int
    streams: int
    window: int

    def inputs(self, batch: int) -> tuple[Tensor, ...]:
        """Example inputs of a network."""
        return (torch.ones(batch, self.streams, self.window, dtype=torch.long),)

    def output(self, batch: int) -> tuple[int, ...]:
        """The shape of its logits."""
        return (batch, self.streams, self.window, self.words)


@dataclass(frozen=True, kw_only=True)
class Clips:
    """Shape of a recogniser: features [B, frames, mels] and symbols [B, length], logits [B, length, symbols].

    Its third input, frames [B], says how many frames of each row are sound; a network is called without it where
    the padding counts as sound. Symbols are those of `tiebreak.data.speech.alphabet`: start 0, end 1, padding 2.
    """

    mels: int
    frames: int
    symbols: int = 35
    length: int

    def inputs(self, batch: int) -> tuple[Tensor, ...]:
        """Example inputs of a network."""
        symbols, frames = torch.zeros(batch, self.length, dtype=torch.long), torch.full((batch,), self.frames)
        return torch.zeros(batch, self.frames, self.mels), symbols, frames

    def output(self, batch: int) -> tuple[int, ...]:
        """The shape of its logits."""
        return (batch, self.length, self.symbols)


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Shape of a text classifier: words [B, length] in, logits [B, classes] out.

    Word 0 is padding at the end of a text, word 1 stands for all words that are not in the vocabulary.
    """

    words: int  # padding and unknown included
    length: int
    classes: int

    def inputs(self, batch: int) -> tuple[Tensor, ...]:
        """Example inputs of a network."""
        return (torch.full((batch, self.length), 2),)

    def output(self, batch: int) -> tuple[int, ...]:
        """The shape of its logits."""
        return (batch, self.classes)


Shape = Images | Sentences | Clips | Words | Graph | Texts | Tensors
SHAPES: Mapping[str, type[Shape]] = {  # by family
    "classifier": Images,
    "translator": Sentences,
    "recogniser": Clips,
    "language": Words,
    "node-classifier": Graph,
    "text-classifier": Texts,
    OWN_TASK: Tensors,
}


def shape_of(family: str, sizes: Mapping[str, Any]) -> Shape:
    """The shape of a family with these sizes, as a plan holds them."""
    return SHAPES[family](**sizes)


@dataclass(frozen=True, kw_only=True)
class Design:
    """One network: its family, and the class (or function) that builds it from the task's shape and its options."""

    name: str
    family: str
    build: Callable[..., nn.Module]
    text_hash: str = ""  # of the user's file that the design comes from

    def network(self, shape: Shape, options: Mapping[str, Scalar], key: int) -> nn.Module:
        """A freshly initialised network. Constructors draw from the global generators: they are seeded with the key."""
        if not self.text_hash:
            with seeded(key):
                return self.build(shape, **options)
        checked = self.text_hash, self.name, shape, tuple(sorted(options.items()))
        try:
            network = self._user_network(shape, options, key)
            if checked not in _CALLS_FUNCTIONS:
                example = shape.inputs(1 if isinstance(shape, Words) else 2)  # a window of words is a batch in itself
                _CALLS_FUNCTIONS[checked] = check_network(partial(self._user_network, shape, options), example)
        except TiebreakError as error:
            raise TiebreakError(f"design {self.name!r}: {error}") from error.__cause__
        if _CALLS_FUNCTIONS[checked]:
            key_functions(network)
        return network

    def _user_network(self, shape: Shape, options: Mapping[str, Scalar], key: int) -> nn.Module:
        # Torch's fast path of attention in evaluation has no rule for vmap.
        torch.backends.mha.set_fastpath_enabled(False)
        with seeded(key):
            with unchanged_settings():
                network = self._build_user_design(shape, options)
            if torch.initial_seed() != key:
                raise TiebreakError(
                    "its constructor seeds torch's generator (torch.manual_seed), so that all seeds would start with"
                    " the same parameters; leave that out: every run is seeded"
                )
            leave_uncompiled(network)
            with unchanged_settings(), unchanged_tensors(network):
                check_output(network, shape)  # lazy layers draw their parameters here
            swap_dropout(network)
            swap_batchnorm(network)
            swap_recurrent(network)
        return network

    def _build_user_design(self, shape: Shape, options: Mapping[str, Scalar]) -> nn.Module:
        try:
            network = self.build(shape, **options)
        except Exception as error:  # the design may raise anything
            raise TiebreakError(_described(error)) from error
        if not isinstance(network, nn.Module):
            raise TiebreakError(f"should build an nn.Module, not {type(network).__name__}")
        return network


def _described(error: Exception) -> str:
    text = f"{type(error).__name__}: {' '.join(str(error).split())}"
    if isinstance(error, ModuleNotFoundError):
        text += "; import a module beside the design file at the top of the file, not inside a function"
    _, missing, names = str(error).partition("__init__() missing ")
    if missing and error.__traceback__ is not None and error.__traceback__.tb_next is None:  # not a call inside it
        options = ", ".join(f"{each} = …" for each in names.split("'")[1::2])
        text += f"; give it a value in the study: build = {{ {options} }}"
    return text


def check_output(network: nn.Module, shape: Shape) -> None:
    """Refuse a user's network that is not of its family, with what it gave and what it should have given."""
    mode = network.training
    try:
        with torch.no_grad():
            logits = network.eval()(*shape.inputs(2))
    except Exception as error:  # the design may raise anything
        raise TiebreakError(
            f"{_described(error)}, for input of shape {' and '.join(str(list(each.shape)) for each in shape.inputs(2))}"
        ) from error
    network.train(mode)
    if not any(parameter.requires_grad for parameter in network.parameters()):
        raise TiebreakError("has no parameters to train")
    if isinstance(logits, Tensor) and not logits.is_floating_point():
        raise TiebreakError(f"gave numbers of type {logits.dtype}, logits should be real numbers")
    found = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
    wanted = shape.output(2)
    if not wanted and not (isinstance(logits, Tensor) and logits.ndim and len(logits) == 2):
        raise TiebreakError(
            f"gave {found} for 2 examples, should give one tensor with the examples along the first axis; torch.cat"
            " joins several"
        )
    if wanted and found != wanted:
        raise TiebreakError(f"gave {found} for 2 examples, should give logits of shape {wanted}")
