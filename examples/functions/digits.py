"""Two classifiers of scikit-learn on handwritten digits: is one better, over 20 random splits and initialisations?"""

import sys
from typing import Any

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import tiebreak as tb


def train(seed: int, kind: str) -> dict[str, Any]:
    """Train one classifier; a seed decides how the digits are split, and the classifier's random numbers."""
    images, labels = load_digits(return_X_y=True)
    rest, test, rest_labels, test_labels = train_test_split(images, labels, test_size=0.3, random_state=seed)
    learn, val, learn_labels, val_labels = train_test_split(rest, rest_labels, test_size=0.3, random_state=seed)
    models = {
        "forest": lambda: RandomForestClassifier(n_estimators=30, random_state=seed),
        "linear": lambda: LogisticRegression(max_iter=2000, C=0.01, random_state=seed),
    }
    model = models[kind]().fit(learn, learn_labels)
    right = model.predict(test) == test_labels
    return {
        "val": {"accuracy": model.score(val, val_labels)},
        "test": {"accuracy": right.mean()},
        "outcomes": {"accuracy": right},
    }


if __name__ == "__main__":
    result = tb.compare(
        train,
        arms={"forest": {"kind": "forest"}, "linear": {"kind": "linear"}},
        seeds=int(sys.argv[2]) if len(sys.argv) > 2 else 20,
        metric="accuracy",
        margin=0.005,
        out=sys.argv[1] if len(sys.argv) > 1 else "runs/digits",
    )
    print(result.verdict.answer)
