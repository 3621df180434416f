"""Every design, task and data set by name: what study files are checked against, without importing torch.

`catalog.py` joins these names to code; tests/test_names.py keeps the two equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Scalar = bool | int | float | str
Goal = Literal["max", "min"]


@dataclass(frozen=True, kw_only=True)
class Option:
    """One typed option of a task, an evaluation or a design."""

    default: Scalar
    line: str
    choices: tuple[Scalar, ...] = ()
    low: float | None = None
    high: float | None = None
    of_data: bool = False  # says how the data is read: a study's, not an arm's


@dataclass(frozen=True, kw_only=True)
class DesignName:
    """A network that a study can name."""

    family: str
    line: str
    options: Mapping[str, Option] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A named set of task options: how the reports did it, or how it should be done."""

    options: Mapping[str, Scalar] = field(default_factory=dict)
    data: tuple[str, ...] = ()  # the data sets that it makes sense for; none named: all


@dataclass(frozen=True, kw_only=True)
class TaskName:
    """A task: its metrics, the options a study may change, and its protocols (named sets of options)."""

    family: str
    line: str
    metrics: Mapping[str, Goal]
    options: Mapping[str, Option]
    evaluation: Mapping[str, Option]
    protocols: Mapping[str, Protocol]
    use: Mapping[str, Option] = field(default_factory=dict)  # options of `tiebreak use`
    ordered: bool = False  # examples follow one another: a batch is one of them


@dataclass(frozen=True, kw_only=True)
class DataName:
    """A data set, and the task family that can use it."""

    family: str
    line: str
    embedded: bool = False


@dataclass(frozen=True, kw_only=True)
class Hyper:
    """A hyper-parameter: a number per run. `default=None` leaves it to the design."""

    default: float | None
    low: float
    high: float
    line: str


def _width(default: int) -> Option:
    return Option(default=default, choices=(16, 32, 48, 64, 80, 96, 128, 192, 256), line="of embeddings and states")


def _gcn(line: str) -> DesignName:
    hidden = Option(default=16, choices=(4, 8, 16, 32, 64), line="hidden units")
    return DesignName(family="node-classifier", line=line, options={"hidden": hidden})


def _size(default: int, line: str) -> Option:
    return Option(default=default, low=1, high=16_384, line=line)


_RNN = {"embedding": _size(256, "of a word's embedding"), "hidden": _size(512, "of the state")}
_TRANSFORMER = {
    "width": Option(default=464, low=2, high=16_384, line="of embeddings and layers: a multiple of 2 and of the heads"),
    "layers": Option(default=2, low=1, high=24, line="layers"),
    "heads": Option(default=8, low=1, high=64, line="heads of each layer"),
}


_SPEECH = {
    "width": Option(default=200, choices=(16, 32, 48, 64, 96, 128, 200, 256, 384), line="of embeddings and states"),
    "strides": Option(default=1, choices=(1, 2), line="of the first convolution; the second one's is 2"),
    "augment": Option(default=0, low=0, high=10, line="stretches of time and of bands hidden in training: SpecAugment"),
}

DESIGNS: Mapping[str, DesignName] = {
    "cnn-pool": DesignName(family="classifier", line="two convolutions, each followed by 2x2 max pooling"),
    "cnn-strided": DesignName(family="classifier", line="the same without pooling: both convolutions have stride 2"),
    "cnn-pool-unpadded": DesignName(family="classifier", line="cnn-pool whose first convolution lost its padding"),
    "cnn-kuzushiji": DesignName(family="classifier", line="a larger cnn-pool: 5x5 filters first, 600 hidden units"),
    "mlp": DesignName(
        family="classifier",
        line="fully connected, as many parameters as the CNN it is compared with",
        options={
            "match": Option(
                default="cnn-pool",
                choices=("cnn-pool", "cnn-strided", "cnn-pool-unpadded", "cnn-kuzushiji"),
                line="the design whose number of parameters it gets",
            )
        },
    ),
    "attention-rows": DesignName(
        family="classifier",
        line="an image's rows as a sequence, one layer of attention between them",
        options={
            "heads": Option(default=4, choices=(1, 2, 4, 8), line="heads that share the width of 64"),
            "kind": Option(
                default="softmax", choices=("softmax", "taylor"), line="softmax attention, or its Taylor features"
            ),
        },
    ),
    "translator-plain": DesignName(
        family="translator",
        line="an LSTM reads the source in both directions, another one writes the target",
        options={"width": _width(128)},
    ),
    "translator-attention": DesignName(
        family="translator",
        line="the same with bilinear attention to what was read",
        options={"width": _width(128)},
    ),
    "translator-taylor": DesignName(
        family="translator",
        line="the same with Taylor attention, linear in the length",
        options={"width": _width(128)},
    ),
    "translator-transformer": DesignName(
        family="translator",
        line="a transformer of about the same size, two layers on either side",
        options={"width": _width(80)},
    ),
    "gcn": _gcn("two graph convolutions, symmetric normalisation, with self-loops"),
    "gcn-row": _gcn("the same with rows that sum to one"),
    "gcn-none": _gcn("the same without normalisation"),
    "gcn-no-loops": _gcn("gcn without self-loops: of itself a node hears through its neighbours only"),
    "gcn-row-no-loops": _gcn("gcn-row without self-loops"),
    "gcn-none-no-loops": _gcn("gcn-none without self-loops"),
    "mlp-graph": _gcn("the same layers without the edges"),
    "rnn-sigmoid": DesignName(
        family="language", line="the recurrent network of report R4: one layer, sigmoid, state carried on", options=_RNN
    ),
    "rnn-tanh": DesignName(family="language", line="the same with tanh", options=_RNN),
    "lstm": DesignName(
        family="language",
        line="layers of LSTM with dropout between them, state carried on",
        options={
            "embedding": _size(320, "of a word's embedding"),
            "hidden": _size(320, "of each layer"),
            "layers": Option(default=2, low=1, high=8, line="layers"),
            "tied": Option(default=False, line="the output layer is the embedding again; both need the same size"),
        },
    ),
    "transformer": DesignName(
        family="language", line="causal attention within the window, nothing carried on", options=_TRANSFORMER
    ),
    "taylor-transformer": DesignName(
        family="language", line="the same with Taylor attention, linear in the length", options=_TRANSFORMER
    ),
    "speech-lstm": DesignName(
        family="recogniser",
        line="convolutions and attention hear, an LSTM that looks at what was heard writes",
        options=_SPEECH,
    ),
    "speech-attention": DesignName(
        family="recogniser",
        line="the same ear; attention to what was written, instead of an LSTM",
        options=_SPEECH,
    ),
    "speech-taylor": DesignName(
        family="recogniser",
        line="the same with Taylor attention to the sound, linear in the length of the clip",
        options=_SPEECH,
    ),
}

TASKS: Mapping[str, TaskName] = {
    "classify": TaskName(
        family="classifier",
        line="image classification, negative log likelihood",
        metrics={"accuracy": "max", "loss": "min"},
        options={
            "divisor": Option(default=255, choices=(255, 256), line="pixels are divided by this"),
            "test_images": Option(
                default="all", choices=("all", "as-reported"), line="the whole test split, or the 529 of the reports"
            ),
            "shuffle_pixels": Option(default=False, line="move every image's pixels by one fixed permutation"),
        },
        evaluation={
            "shift": Option(default=0, low=-14, high=14, line="move images right by this many pixels, filling with 0"),
            "rotate": Option(default=0.0, low=-180.0, high=180.0, line="turn images counter-clockwise, in degrees"),
            "scale": Option(default=1.0, low=0.25, high=4.0, line="enlarge what is in the images by this factor"),
            "disturbed": Option(
                default=False,
                line="the mean over six moves: 2 pixels left and right, 15 degrees, 15 % smaller and larger",
            ),
        },
        protocols={
            "audited": Protocol(),
            "as-reported": Protocol(
                options={"divisor": 256, "test_images": "as-reported"}, data=("octmnist", "kmnist")
            ),
        },
    ),
    "translate": TaskName(
        family="translator",
        line="translation letter by letter, cross-entropy; error rates of what is decoded",
        metrics={"error": "min", "cer": "min", "exact": "max", "loss": "min"},
        options={
            "steps": Option(
                default=0, low=0, high=1000, line="symbols to decode at most; 0: as many as the longest target has"
            ),
            "drop_last": Option(default=False, line="drop the last symbol of a sentence that did not end, as R3 did"),
        },
        evaluation={
            "beam": Option(default=1, low=1, high=100, line="sentences kept while decoding; 1 is greedy"),
            "decoding": Option(
                default="protocol",
                choices=("protocol", "whole"),
                line="as the protocol says; or as many steps as the longest target has, nothing dropped",
            ),
        },
        protocols={
            "audited": Protocol(),
            "as-reported": Protocol(options={"steps": 49, "drop_last": True}, data=("tatoeba-spa-eng",)),
        },
        use={
            "beam": Option(default=1, low=1, high=100, line="sentences kept while decoding; 1 is greedy"),
            "show_attention": Option(default=False, line="show where each letter looked"),
        },
    ),
    "nodes": TaskName(
        family="node-classifier",
        line="classification of the nodes of one graph, negative log likelihood; each step sees all training nodes",
        metrics={"accuracy": "max", "loss": "min"},
        options={
            "normalise_features": Option(default=True, line="scale the features of a node to the sum 1"),
            "epoch_steps": Option(
                default=10, low=1, high=1000, line="examples of training, each the whole graph: steps of batch 1"
            ),
        },
        evaluation={},
        protocols={"audited": Protocol()},
    ),
    "language": TaskName(
        family="language",
        line="the next word of a text, cross-entropy; perplexity of the whole text",
        metrics={"perplexity": "min", "loss": "min"},
        options={
            "streams": Option(default=128, low=1, high=4096, line="parts of the text that are read side by side"),
            "window": Option(default=10, low=1, high=4096, line="tokens between two updates"),
            "evaluation_window": Option(
                default=0, low=0, high=4096, line="tokens read at once in evaluation; 0: as many as in training"
            ),
            "evaluation_trains": Option(
                default=False, line="passes over validation and test text also train, as those of R4 did"
            ),
            "level": Option(
                default="default",
                choices=("default", "word", "character"),
                line="what a token is; default: as usual for the data",
                of_data=True,
            ),
            "vocabulary": Option(
                default=0, low=0, high=1_000_000, line="words to know at most; 0: as usual for the data", of_data=True
            ),
        },
        evaluation={},
        protocols={"audited": Protocol(), "as-reported": Protocol(options={"evaluation_trains": True})},
        use={
            "temperature": Option(
                default=1.0, low=0.0, high=100.0, line="below 1 likely words get likelier; 0: always the likeliest"
            ),
            "top_k": Option(default=0, low=0, high=1_000_000, line="draw from the k likeliest words; 0: from all"),
            "top_p": Option(
                default=1.0, low=0.0, high=1.0, line="draw from the likeliest words that make up this share"
            ),
            "n": Option(default=1, low=1, high=1000, line="how many texts"),
            "sampling_seed": Option(default=0, low=0, high=2**62, line="of the draws"),
            "words": Option(default=100, low=1, high=100_000, line="to write at most"),
        },
        ordered=True,
    ),
    "transcribe": TaskName(
        family="recogniser",
        line="speech recognition letter by letter, cross-entropy; similarities and error rates of what is decoded",
        metrics={"loss": "min", "jaccard": "max", "cosine": "max", "dl": "max", "cer": "min", "wer": "min"},
        options={
            "filters": Option(
                default="true", choices=("true", "16000"), line="mel filters for the sound's rate, or for 16 kHz always"
            ),
            "frames": Option(default=0, low=0, high=100_000, line="clips are padded or cut to; 0: the longest clip's"),
            "mask_padding": Option(default=True, line="padding frames are not looked at"),
            "length": Option(default=0, low=0, high=98, line="symbols of a target, end included; 0: the longest one's"),
            "count_padding": Option(default=False, line="padding symbols count in the loss"),
            "smoothed": Option(
                default=0.0,
                low=0.0,
                high=0.999,
                line="label smoothing in the loss that is reported, as R0 to R2 had it",
            ),
            "steps": Option(default=0, low=0, high=98, line="symbols to decode at most; 0: as many as a target has"),
        },
        evaluation={"beam": Option(default=1, low=1, high=100, line="transcripts kept while decoding; 1 is greedy")},
        protocols={
            "audited": Protocol(),
            "as-reported": Protocol(
                options={
                    "filters": "16000",
                    "frames": 2754,
                    "mask_padding": False,
                    "length": 98,
                    "count_padding": True,
                    "smoothed": 0.1,
                    "steps": 98,
                },
                data=("ljspeech", "spoken-ljspeech"),
            ),
        },
        use={"beam": Option(default=1, low=1, high=100, line="transcripts kept while decoding; 1 is greedy")},
    ),
}

DATA: Mapping[str, DataName] = {
    "mnist5k": DataName(family="classifier", embedded=True, line="5,000 MNIST digits, 28x28, 10 classes"),
    "mnist": DataName(family="classifier", line="MNIST, 70,000 digits, 28x28, 10 classes"),
    "octmnist": DataName(family="classifier", line="retinal OCT, 109,309 images, 28x28, 4 classes (MedMNIST v2)"),
    "pneumoniamnist": DataName(family="classifier", line="chest X-rays, 5,856 images, 28x28, 2 classes (MedMNIST v2)"),
    "kmnist": DataName(family="classifier", line="Kuzushiji-MNIST, 70,000 cursive hiragana, 28x28, 10 classes"),
    "kuzushiji-kanji10": DataName(
        family="classifier", line="10 Kuzushiji-Kanji, 13,931 images, 28x28, not for download"
    ),
    "number-words": DataName(family="translator", embedded=True, line="5,000 numbers in words, English to Spanish"),
    "tatoeba-spa-eng": DataName(
        family="translator", line="12,483 short sentences, Spanish to English, the files of R3, not for download"
    ),
    "tatoeba-full": DataName(
        family="translator", line="118,964 sentences, Spanish to English, cut to the short ones, not for download"
    ),
    "cora": DataName(family="node-classifier", line="2,708 papers, 5,278 citations, 1,433 words, 7 classes"),
    "cora-planetoid": DataName(family="node-classifier", line="the same graph, as its authors publish it"),
    "blocks": DataName(family="node-classifier", embedded=True, line="1,000 nodes, 120 features, 4 classes, generated"),
    "karate": DataName(family="node-classifier", embedded=True, line="Zachary's karate club: 34 members, 2 factions"),
    "ptb": DataName(family="language", line="Penn Treebank, 1,085,779 words of newspaper, vocabulary 10,000"),
    "tinyshakespeare": DataName(family="language", line="1,115,394 characters of Shakespeare"),
    "pydoc": DataName(family="language", embedded=True, line="the topics of Python's help, vocabulary 2,000"),
    "markov": DataName(family="language", embedded=True, line="132,000 words of a made-up grammar of known entropy"),
    "spoken-numbers": DataName(
        family="recogniser", embedded=True, line="3,400 spoken numbers, synthetic, unseen voices"
    ),
    "an4": DataName(family="recogniser", line="AN4, 1,078 utterances of people as 13 cepstra, spelt words and numbers"),
    "ljspeech": DataName(family="recogniser", line="LJ Speech 1.1, 13,100 clips of one reader, 24 hours"),
    "spoken-ljspeech": DataName(family="recogniser", line="the transcripts of LJ Speech, spoken by a synthesiser"),
}
OWN_DATA = "your own data is a path with a slash, such as ./images or ./pairs.tsv"

HYPERS: Mapping[str, Hyper] = {
    "lr": Hyper(default=0.01, low=0.0, high=1e9, line="learning rate"),
    "momentum": Hyper(default=0.0, low=0.0, high=1.0, line="momentum of SGD"),
    "weight_decay": Hyper(default=0.0, low=0.0, high=1.0, line="L2 penalty; decoupled from the gradient with adamw"),
    "beta1": Hyper(default=0.9, low=0.0, high=1.0, line="decay of Adam's first moment"),
    "beta2": Hyper(default=0.999, low=0.0, high=1.0, line="decay of Adam's second moment"),
    "eps": Hyper(default=1e-8, low=0.0, high=1.0, line="added to Adam's denominator"),
    "dropout": Hyper(default=None, low=0.0, high=0.999, line="rate of every dropout layer; default: the design's own"),
    "label_smoothing": Hyper(default=0.0, low=0.0, high=0.999, line="share of the target spread over all classes"),
}


def is_path(name: str) -> bool:
    """Whether the data of a study is a file or folder of the user's own, not the name of a data set.

    >>> [is_path(name) for name in ("mnist", "./mnist", "digits.npz", "..")]
    [False, True, True, True]
    """
    return "/" in name or "\\" in name or name.endswith(".npz") or name in (".", "..")
