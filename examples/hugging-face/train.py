"""A training script with the trainer of Hugging Face: a small BERT that finds out which of two words comes first.

It knows nothing of Tiebreak and downloads nothing. The trainer writes a checkpoint after every epoch; the script
continues from it, so that an interrupted run loses one epoch at most.
"""

import argparse
import json
from pathlib import Path

import torch
from torch.utils.data import TensorDataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

WORDS, LENGTH, EPOCHS = 16, 8, 3


def examples(split: str, many: int) -> TensorDataset:
    """Sentences with the words 0 and 1 in them, and which comes first: the same for every run."""
    generator = torch.Generator().manual_seed({"train": 1, "val": 2, "test": 3}[split])
    words = torch.randint(2, WORDS, (many, LENGTH), generator=generator)
    places = torch.rand(many, LENGTH, generator=generator).argsort(1)[:, :2]
    words.scatter_(1, places, torch.tensor([0, 1]).expand(many, 2))
    return TensorDataset(words, (places[:, 0] > places[:, 1]).long())


def collate(rows: list[tuple[torch.Tensor, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """A batch as the network takes it."""
    words, labels = zip(*rows, strict=True)
    return {"input_ids": torch.stack(words), "labels": torch.stack(labels)}


class Curves(TrainerCallback):
    """Writes a line for each epoch, which Tiebreak draws as learning curves."""

    def __init__(self, path: Path) -> None:
        """`path`: the file."""
        self.path = path

    def on_evaluate(self, args, state, control, metrics, **more) -> None:
        """After an epoch."""
        if "eval_accuracy" in metrics:
            scores = {"val_accuracy": metrics["eval_accuracy"], "val_loss": metrics["eval_loss"]}
            with self.path.open("a") as file:
                file.write(json.dumps({"epoch": round(state.epoch), **scores}) + "\n")


def last_checkpoint(out: Path) -> str | None:
    """The newest checkpoint that is complete: the trainer writes its state last, so an interrupted one has none."""
    complete = sorted(out.glob("checkpoint-*/trainer_state.json"), key=lambda path: path.stat().st_mtime)
    return str(complete[-1].parent) if complete else None


def main() -> None:
    """Train one network."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--smoothing", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    network = BertForSequenceClassification(
        BertConfig(vocab_size=WORDS, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
                   max_position_embeddings=LENGTH, num_labels=2)
    )  # fmt: skip
    trainer = Trainer(
        model=network,
        args=TrainingArguments(
            output_dir=str(options.out), num_train_epochs=EPOCHS, per_device_train_batch_size=32, learning_rate=3e-3,
            label_smoothing_factor=options.smoothing, seed=options.seed, eval_strategy="epoch", save_strategy="epoch",
            save_total_limit=1, use_cpu=not torch.cuda.is_available(), report_to=[], disable_tqdm=True,
        ),
        train_dataset=examples("train", 512),
        eval_dataset=examples("val", 256),
        data_collator=collate,
        compute_metrics=lambda found: {"accuracy": float((found.predictions.argmax(1) == found.label_ids).mean())},
        callbacks=[Curves(options.out / "metrics.jsonl")],
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=last_checkpoint(options.out))
    val = trainer.evaluate(metric_key_prefix="final")["final_accuracy"]
    test = trainer.evaluate(examples("test", 256), metric_key_prefix="test")["test_accuracy"]
    (options.out / "scores.json").write_text(json.dumps({"val": {"accuracy": val}, "test": {"accuracy": test}}))


if __name__ == "__main__":
    main()
