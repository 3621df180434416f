"""The designs of the catalog by name: family, one line, options."""

from __future__ import annotations

from collections.abc import Mapping

from tiebreak.study.registry_types import DesignEntry, Option


def _width(default: int) -> Option:
    sizes = (16, 32, 48, 64, 80, 96, 128, 192, 256)
    return Option(default=default, choices=sizes, line="size of embeddings and hidden states")


def _gcn(line: str) -> DesignEntry:
    hidden = Option(default=16, choices=(4, 8, 16, 32, 64), line="hidden units")
    return DesignEntry(family="node-classifier", line=line, options={"hidden": hidden})


def _size(default: int, line: str) -> Option:
    return Option(default=default, low=1, high=16_384, line=line)


_RNN = {"embedding": _size(256, "size of word embeddings"), "hidden": _size(512, "size of the hidden state")}
_TRANSFORMER = {
    "width": Option(
        default=464, low=2, high=16_384, line="size of embeddings and layers: a multiple of 2 and of the heads"
    ),
    "layers": Option(default=2, low=1, high=24, line="number of layers"),
    "heads": Option(default=8, low=1, high=64, line="attention heads per layer"),
}
_SPEECH = {
    "width": Option(
        default=200,
        choices=(16, 32, 48, 64, 96, 128, 200, 256, 384),
        line="size of embeddings and hidden states",
    ),
    "strides": Option(default=1, choices=(1, 2), line="stride of the first convolution; that of the second is 2"),
    "augment": Option(
        default=0, low=0, high=10, line="SpecAugment: time masks and frequency masks per clip in training"
    ),
}

_TEXT = {"width": Option(default=64, low=1, high=4096, line="size of embeddings, filters and hidden states")}

DESIGNS: Mapping[str, DesignEntry] = {
    "cnn-pool": DesignEntry(family="classifier", line="two convolutions, each followed by 2x2 max pooling"),
    "cnn-strided": DesignEntry(family="classifier", line="cnn-pool with stride-2 convolutions instead of pooling"),
    "cnn-pool-unpadded": DesignEntry(family="classifier", line="cnn-pool without padding in the first convolution"),
    "cnn-kuzushiji": DesignEntry(
        family="classifier", line="a larger cnn-pool: 5x5 filters in the first convolution, 600 hidden units"
    ),
    "mlp": DesignEntry(
        family="classifier",
        line="fully connected network with as many parameters as a given CNN",
        options={
            "match": Option(
                default="cnn-pool",
                choices=("cnn-pool", "cnn-strided", "cnn-pool-unpadded", "cnn-kuzushiji"),
                line="the CNN whose number of parameters it matches",
            )
        },
    ),
    "attention-rows": DesignEntry(
        family="classifier",
        line="one self-attention layer over the rows of the image as a sequence",
        options={
            "heads": Option(default=4, choices=(1, 2, 4, 8), line="attention heads; together they are 64 wide"),
            "kind": Option(
                default="softmax", choices=("softmax", "taylor"), line="softmax attention, or its Taylor approximation"
            ),
        },
    ),
    "translator-plain": DesignEntry(
        family="translator",
        line="bidirectional LSTM encoder, LSTM decoder, no attention",
        options={"width": _width(128)},
    ),
    "translator-attention": DesignEntry(
        family="translator",
        line="translator-plain with bilinear attention to the encoder states",
        options={"width": _width(128)},
    ),
    "translator-taylor": DesignEntry(
        family="translator",
        line="translator-plain with Taylor attention to the encoder states, linear in the length",
        options={"width": _width(128)},
    ),
    "translator-transformer": DesignEntry(
        family="translator",
        line="transformer of about the same size: two encoder and two decoder layers",
        options={"width": _width(80)},
    ),
    "gcn": _gcn("two graph convolutions, symmetric normalisation, self-loops"),
    "gcn-row": _gcn("gcn with row normalisation: each row of the adjacency matrix sums to one"),
    "gcn-none": _gcn("gcn without normalisation"),
    "gcn-no-loops": _gcn("gcn without self-loops"),
    "gcn-row-no-loops": _gcn("gcn-row without self-loops"),
    "gcn-none-no-loops": _gcn("gcn-none without self-loops"),
    "mlp-graph": _gcn("the layers of gcn without the edges"),
    "rnn-sigmoid": DesignEntry(
        family="language",
        line="the RNN of report R4: one layer, sigmoid, state carried from window to window",
        options=_RNN,
    ),
    "rnn-tanh": DesignEntry(family="language", line="rnn-sigmoid with tanh instead of sigmoid", options=_RNN),
    "lstm": DesignEntry(
        family="language",
        line="stacked LSTM with dropout between layers, state carried from window to window",
        options={
            "embedding": _size(320, "size of word embeddings"),
            "hidden": _size(320, "hidden units per layer"),
            "layers": Option(default=2, low=1, high=8, line="number of layers"),
            "tied": Option(default=False, line="the output layer shares the embedding's weights; both need one size"),
        },
    ),
    "transformer": DesignEntry(
        family="language", line="causal transformer; sees the current window only", options=_TRANSFORMER
    ),
    "taylor-transformer": DesignEntry(
        family="language", line="transformer with Taylor attention, linear in the length", options=_TRANSFORMER
    ),
    "text-bag": DesignEntry(
        family="text-classifier", line="mean of word embeddings, one hidden layer: no word order", options=_TEXT
    ),
    "text-cnn": DesignEntry(
        family="text-classifier", line="filters over 2, 3 and 4 words, largest answer of each (Kim 2014)", options=_TEXT
    ),
    "text-lstm": DesignEntry(family="text-classifier", line="last states of a bidirectional LSTM", options=_TEXT),
    "speech-lstm": DesignEntry(
        family="recogniser",
        line="conv + self-attention encoder, LSTM decoder with cross-attention",
        options=_SPEECH,
    ),
    "speech-attention": DesignEntry(
        family="recogniser",
        line="the encoder of speech-lstm, self-attention decoder with cross-attention",
        options=_SPEECH,
    ),
    "speech-taylor": DesignEntry(
        family="recogniser",
        line="speech-attention with Taylor attention in encoder and cross-attention, linear in the clip's length",
        options=_SPEECH,
    ),
}
