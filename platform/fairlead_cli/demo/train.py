"""Trains the demo's classifiers on scikit-learn's digits and writes them as ONNX; run as a process of its own.

    python -m fairlead_cli.demo.train FOLDER

FOLDER then holds `v1.onnx` (logistic regression), `v2.onnx` (a small neural network), `v3.onnx` (v2, failing on
purpose), `v4.onnx` (v2, wrong on purpose), `held-out.npz` (images and labels that no model was trained on) and
`training.json`. The 8x8 images come inside scikit-learn's package.

A folder that holds what this very code trained is left as it is: training again gives other bytes in the last digits,
seeded or not, and a demo that runs again should find its versions and not register new ones.
"""

import argparse
import hashlib
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

from fairlead_cli.demo.broken import fail_above
from fairlead_cli.demo.mistaken import mix_up, mixed_up

INPUT, LABEL, PROBABILITIES = "pixels", "label", "probabilities"
_OPSET, _DIGITS = 17, 10
# Version 3 fails for the brightest images, this share of them.
_BAD_SHARE = 0.3
# Version 4 answers each of these digits with the next of them.
_MIXED_UP = (3, 5, 8)


def main() -> None:
    """Train, export and write, unless that is done."""
    parser = argparse.ArgumentParser(prog="python -m fairlead_cli.demo.train")
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    recipe = _recipe()
    if _is_trained(folder, recipe):
        return
    digits = load_digits()
    images, labels = digits.data.astype(np.float32), digits.target.astype(np.int64)
    train_x, held_x, train_y, held_y = train_test_split(images, labels, test_size=0.4, random_state=7, stratify=labels)

    first = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=500))
    second = make_pipeline(StandardScaler(), MLPClassifier((64,), max_iter=300, random_state=7))
    models = {"v1": first.fit(train_x, train_y), "v2": second.fit(train_x, train_y)}
    for name, model in models.items():
        onnx.save(_exported(model, name), folder / f"{name}.onnx")
    brightness = float(np.quantile(held_x.sum(axis=1), 1 - _BAD_SHARE))
    onnx.save(fail_above(onnx.load(folder / "v2.onnx"), INPUT, brightness), folder / "v3.onnx")
    answered = mixed_up(_DIGITS, _MIXED_UP)
    onnx.save(mix_up(onnx.load(folder / "v2.onnx"), LABEL, PROBABILITIES, answered), folder / "v4.onnx")
    mistaken = np.array(answered)[models["v2"].predict(held_x)]

    np.savez(folder / "held-out.npz", images=held_x, labels=held_y)
    facts = {
        "recipe": recipe,
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
            {
                "name": "v4",
                "kind": f"v2 that mixes up the digits {', '.join(map(str, _MIXED_UP))}",
                "accuracy_percent": round(100.0 * float((mistaken == held_y).mean()), 2),
            },
        ],
        "example": [int(value) for value in held_x[0]],
        "example_label": int(held_y[0]),
    }
    # Last and by rename: where it is, everything is.
    temporary = folder / "training.json.new"
    temporary.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    temporary.replace(folder / "training.json")


def _recipe() -> str:
    """Return the digest of the code that trains the models."""
    here = Path(__file__)
    files = [here, here.with_name("broken.py"), here.with_name("mistaken.py")]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _is_trained(folder: Path, recipe: str) -> bool:
    try:
        recorded = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return False
    files = [folder / f"{version['name']}.onnx" for version in recorded["versions"]] + [folder / "held-out.npz"]
    return recorded.get("recipe") == recipe and all(file.is_file() for file in files)


def _exported(model: Any, name: str) -> onnx.ModelProto:
    """Return the pipeline as ONNX with the same tensors for every kind of classifier."""
    exported: onnx.ModelProto = to_onnx(
        model,
        name=f"digits-{name}",
        initial_types=[(INPUT, FloatTensorType([None, 64]))],
        final_types=[(LABEL, Int64TensorType([None])), (PROBABILITIES, FloatTensorType([None, _DIGITS]))],
        options={"zipmap": False},
        target_opset=_OPSET,
    )
    return exported


def _accuracy(model: Any, images: "np.ndarray[Any, Any]", labels: "np.ndarray[Any, Any]") -> float:
    return round(100.0 * float(model.score(images, labels)), 2)


if __name__ == "__main__":
    main()
