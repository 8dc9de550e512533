"""Trains the demo's classifiers on scikit-learn's digits and writes them as ONNX; run as a process of its own.

    python -m fairlead_cli.demo.train FOLDER

FOLDER then holds `v1.onnx` (logistic regression), `v2.onnx` (a small neural network), `v3.onnx` (v2, bad on purpose),
`held-out.npz` (images and labels that no model was trained on) and `training.json`. The 8x8 images come inside
scikit-learn's package. Everything is seeded and runs in one thread, since sums over several threads come out a little
different each time: the same machine writes the same bytes again, hence the same versions.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from fairlead_cli.demo.broken import fail_above

INPUT, LABEL, PROBABILITIES = "pixels", "label", "probabilities"
_OPSET = 17
# Version 3 fails for the brightest images, this share of them.
_BAD_SHARE = 0.3


def main() -> None:
    """Train, export, write."""
    parser = argparse.ArgumentParser(prog="python -m fairlead_cli.demo.train")
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    digits = load_digits()
    images, labels = digits.data.astype(np.float32), digits.target.astype(np.int64)
    train_x, held_x, train_y, held_y = train_test_split(images, labels, test_size=0.4, random_state=7, stratify=labels)

    first = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=500))
    second = make_pipeline(StandardScaler(), MLPClassifier((64,), max_iter=300, random_state=7))
    with threadpool_limits(1):
        models = {"v1": first.fit(train_x, train_y), "v2": second.fit(train_x, train_y)}
    for name, model in models.items():
        onnx.save(_exported(model, name), folder / f"{name}.onnx")
    brightness = float(np.quantile(held_x.sum(axis=1), 1 - _BAD_SHARE))
    onnx.save(fail_above(onnx.load(folder / "v2.onnx"), INPUT, brightness), folder / "v3.onnx")

    np.savez(folder / "held-out.npz", images=held_x, labels=held_y)
    facts = {
        "images": len(images),
        "trained_on": len(train_x),
        "held_out": len(held_x),
        "versions": [
            {"name": "v1", "kind": "logistic regression", "accuracy_percent": _accuracy(models["v1"], held_x, held_y)},
            {
                "name": "v2",
                "kind": "neural network, 64 hidden",
                "accuracy_percent": _accuracy(models["v2"], held_x, held_y),
            },
            {
                "name": "v3",
                "kind": f"v2 that fails on the brightest {_BAD_SHARE:.0%} of the images",
                "accuracy_percent": None,
            },
        ],
        "example": [int(value) for value in held_x[0]],
        "example_label": int(held_y[0]),
    }
    (folder / "training.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def _exported(model: Any, name: str) -> onnx.ModelProto:
    """Return the pipeline as ONNX with the same tensors for every kind of classifier."""
    exported: onnx.ModelProto = to_onnx(
        model,
        name=f"digits-{name}",
        initial_types=[(INPUT, FloatTensorType([None, 64]))],
        final_types=[(LABEL, Int64TensorType([None])), (PROBABILITIES, FloatTensorType([None, 10]))],
        options={"zipmap": False},
        target_opset=_OPSET,
    )
    return exported


def _accuracy(model: Any, images: "np.ndarray[Any, Any]", labels: "np.ndarray[Any, Any]") -> float:
    return round(100.0 * float(model.score(images, labels)), 2)


if __name__ == "__main__":
    main()
