"""The tasks by name: metrics, options, protocols."""

from __future__ import annotations

from collections.abc import Mapping

from tiebreak.study.registry_types import MetricEntry, Option, Protocol, TaskEntry

_BEAM = Option(default=1, low=1, high=100, line="beam width of decoding; 1: greedy")

_CLASSES: Mapping[str, MetricEntry] = {
    "accuracy": MetricEntry(goal="max"),
    "loss": MetricEntry(goal="min"),
    "balanced_accuracy": MetricEntry(goal="max", functional="ratio", of="accuracy", weight="weight_class", detail=True),
    "macro_f1": MetricEntry(goal="max", label="macro F1", detail=True),
    "calibration_error": MetricEntry(goal="min", detail=True),
}

TASKS: Mapping[str, TaskEntry] = {
    "classify": TaskEntry(
        family="classifier",
        line="image classification, negative log likelihood",
        metrics=_CLASSES,
        options={
            "divisor": Option(default=255, choices=(255, 256), line="pixels are divided by this"),
            "test_images": Option(
                default="all",
                choices=("all", "as-reported"),
                line="the whole test split, or the 529 test images of the reports",
            ),
            "shuffle_pixels": Option(default=False, line="apply one fixed permutation to the pixels of every image"),
            "resize": Option(
                default=0,
                low=0,
                high=1024,
                line="resize the images of your own folder to this width and height; 0: as they are",
                of_data=True,
            ),
        },
        evaluation={
            "shift": Option(
                default=0, low=-14, high=14, line="shift test images right by this many pixels, filled with 0"
            ),
            "rotate": Option(
                default=0.0, low=-180.0, high=180.0, line="rotate test images counter-clockwise by this many degrees"
            ),
            "scale": Option(default=1.0, low=0.25, high=4.0, line="scale the content of test images by this factor"),
            "disturbed": Option(
                default=False,
                line="mean over six moved test sets: by 2 pixels or 15 degrees either way, 15 % smaller or larger",
            ),
        },
        protocols={
            "audited": Protocol(),
            "as-reported": Protocol(
                options={"divisor": 256, "test_images": "as-reported"}, data=("octmnist", "kmnist")
            ),
        },
    ),
    "translate": TaskEntry(
        family="translator",
        line="character-level translation, cross-entropy; error rates of the decoded text",
        metrics={
            "error": MetricEntry(goal="min"),
            "cer": MetricEntry(
                goal="min", functional="ratio", of="error", weight="weight_characters", label="character error rate"
            ),
            "exact": MetricEntry(goal="max", label="exact matches"),
            "loss": MetricEntry(goal="min", functional="ratio", weight="weight_symbols"),
        },
        options={
            "steps": Option(
                default=0, low=0, high=1000, line="most symbols to decode; 0: the length of the longest target"
            ),
            "drop_last": Option(
                default=False, line="drop the last symbol of a decoded sentence without an end symbol, as report R3 did"
            ),
        },
        evaluation={
            "beam": _BEAM,
            "decoding": Option(
                default="protocol",
                choices=("protocol", "whole"),
                line="decode as the protocol says, or up to the length of the longest target with nothing dropped",
            ),
        },
        protocols={
            "audited": Protocol(),
            "as-reported": Protocol(options={"steps": 49, "drop_last": True}, data=("tatoeba-spa-eng",)),
        },
        use={
            "beam": _BEAM,
            "show_attention": Option(default=False, line="show the attention weights of each letter"),
        },
    ),
    "nodes": TaskEntry(
        family="node-classifier",
        line="node classification on one graph, negative log likelihood; full-batch steps",
        whole=True,
        unit="nodes",
        metrics={"accuracy": MetricEntry(goal="max"), "loss": MetricEntry(goal="min")},
        options={
            "normalise_features": Option(default=True, line="scale the features of each node to sum to 1"),
            "epoch_steps": Option(
                default=10, low=1, high=1000, line="training steps per epoch, each on the whole graph"
            ),
        },
        evaluation={},
        protocols={"audited": Protocol()},
    ),
    "language": TaskEntry(
        family="language",
        line="language modelling, cross-entropy; perplexity of the whole text",
        metrics={
            "perplexity": MetricEntry(goal="min", functional="exp-ratio", of="loss", weight="weight_tokens"),
            "loss": MetricEntry(goal="min", functional="ratio", weight="weight_tokens"),
        },
        options={
            "streams": Option(default=128, low=1, high=4096, line="parallel streams that the text is cut into"),
            "window": Option(
                default=10, low=1, high=4096, line="tokens per training step (truncated back-propagation)"
            ),
            "evaluation_window": Option(
                default=0, low=0, high=4096, line="tokens per window in evaluation; 0: as in training"
            ),
            "evaluation_trains": Option(
                default=False, line="evaluation passes also update the weights, as in report R4"
            ),
            "level": Option(
                default="default",
                choices=("default", "word", "character"),
                line="what a token is; default: the usual level of the data set",
                of_data=True,
            ),
            "vocabulary": Option(
                default=0,
                low=0,
                high=1_000_000,
                line="largest vocabulary; 0: the usual one of the data set",
                of_data=True,
            ),
        },
        evaluation={
            "training_mode": Option(
                default=False,
                line="read the test text in training mode (dropout on), as report R4 did, but without training on it",
            )
        },
        protocols={"audited": Protocol(), "as-reported": Protocol(options={"evaluation_trains": True})},
        use={
            "temperature": Option(
                default=1.0, low=0.0, high=100.0, line="sampling temperature; 0: always the most likely token"
            ),
            "top_k": Option(default=0, low=0, high=1_000_000, line="sample from the k most likely tokens; 0: from all"),
            "top_p": Option(
                default=1.0, low=0.0, high=1.0, line="sample from the most likely tokens whose probabilities sum to p"
            ),
            "n": Option(default=1, low=1, high=1000, line="number of texts"),
            "sampling_seed": Option(default=0, low=0, high=2**62, line="seed of the sampling"),
            "words": Option(default=100, low=1, high=100_000, line="most tokens to generate"),
        },
        ordered=True,
        unit="tokens",
    ),
    "classify-text": TaskEntry(
        family="text-classifier",
        line="text classification, negative log likelihood",
        metrics=_CLASSES,
        options={
            "vocabulary": Option(
                default=10_000,
                low=3,
                high=1_000_000,
                line="largest vocabulary, padding and unknown included",
                of_data=True,
            ),
            "length": Option(default=200, low=1, high=10_000, line="words that a text is cut off after", of_data=True),
        },
        evaluation={},
        protocols={"audited": Protocol()},
    ),
    "transcribe": TaskEntry(
        family="recogniser",
        line="character-level speech recognition, cross-entropy; similarities and error rates of the decoded text",
        metrics={
            "loss": MetricEntry(goal="min", functional="ratio", weight="weight_symbols"),
            "jaccard": MetricEntry(goal="max", label="Jaccard similarity"),
            "cosine": MetricEntry(goal="max", label="cosine similarity"),
            "dl": MetricEntry(goal="max", label="Damerau–Levenshtein"),
            "cer": MetricEntry(
                goal="min", functional="ratio", weight="weight_characters", label="character error rate"
            ),
            "wer": MetricEntry(goal="min", functional="ratio", weight="weight_words", label="word error rate"),
        },
        options={
            "filters": Option(
                default="true",
                choices=("true", "16000"),
                line="mel filters for the sampling rate of the audio, or always for 16 kHz",
            ),
            "frames": Option(
                default=0,
                low=0,
                high=100_000,
                line="frames that clips are padded or cut to; 0: those of the longest clip",
            ),
            "mask_padding": Option(default=True, line="attention ignores padding frames"),
            "length": Option(
                default=0,
                low=0,
                high=98,
                line="symbols per target, end symbol included; 0: those of the longest target",
            ),
            "count_padding": Option(default=False, line="padding symbols count in the loss"),
            "smoothed": Option(
                default=0.0,
                low=0.0,
                high=0.999,
                line="label smoothing in the reported loss, as in reports R0 to R2",
            ),
            "steps": Option(default=0, low=0, high=98, line="most symbols to decode; 0: the length of a target"),
        },
        evaluation={"beam": _BEAM},
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
        use={"beam": _BEAM},
    ),
}
