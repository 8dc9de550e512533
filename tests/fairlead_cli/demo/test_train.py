"""The demo's models: trained for real, exported alike, and the bad one bad in the way it claims."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("demo")
    subprocess.run([sys.executable, "-m", "fairlead_cli.demo.train", str(made)], check=True, timeout=120)
    return made


def session(folder: Path, name: str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(folder / f"{name}.onnx", options)


def tensors(model: onnxruntime.InferenceSession) -> list[tuple[str, str, list[Any]]]:
    return [(each.name, each.type, each.shape) for each in [*model.get_inputs(), *model.get_outputs()]]


def test_all_versions_have_the_same_tensors(folder: Path) -> None:
    expected = [
        ("pixels", "tensor(float)", [None, 64]),
        ("label", "tensor(int64)", [None]),
        ("probabilities", "tensor(float)", [None, 10]),
    ]

    assert [tensors(session(folder, name)) for name in ("v1", "v2", "v3")] == [expected] * 3


def test_the_exported_models_are_as_good_as_the_trained_ones(folder: Path) -> None:
    held_out = np.load(folder / "held-out.npz")
    for told in json.loads((folder / "training.json").read_text())["versions"][:2]:
        labels = session(folder, told["name"]).run(["label"], {"pixels": held_out["images"]})[0]
        assert round(100 * float((labels == held_out["labels"]).mean()), 2) == told["accuracy_percent"]
        assert told["accuracy_percent"] > 90


def test_the_bad_one_fails_on_a_part_of_the_real_images_and_else_agrees_with_v2(folder: Path) -> None:
    images = np.load(folder / "held-out.npz")["images"]
    good, bad = session(folder, "v2"), session(folder, "v3")
    failed = 0
    for image in images[:, None, :]:
        try:
            answer = bad.run(None, {"pixels": image})
        except Exception:
            failed += 1
        else:
            np.testing.assert_array_equal(answer[1], good.run(None, {"pixels": image})[1])

    assert 0.25 < failed / len(images) < 0.35


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("value", [0.0, 1.0, 255.0])
def test_the_bad_one_passes_a_check_with_made_up_input(folder: Path, batch: int, value: float) -> None:
    assert session(folder, "v3").run(["label"], {"pixels": np.full((batch, 64), value, np.float32)})[0].shape == (
        batch,
    )


def test_what_is_trained_is_kept(folder: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}

    subprocess.run([sys.executable, "-m", "fairlead_cli.demo.train", str(folder)], check=True, timeout=120)

    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(lambda copy: (copy / "v2.onnx").unlink(), id="a file is missing"),
        pytest.param(lambda copy: (copy / "training.json").write_text("{"), id="its description is cut off"),
        pytest.param(
            lambda copy: (copy / "training.json").write_text('{"recipe": "older", "versions": []}'), id="other code"
        ),
    ],
)
def test_what_is_not_whole_is_trained_again(folder: Path, tmp_path: Path, harm: Callable[[Path], object]) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    harm(copy)

    subprocess.run([sys.executable, "-m", "fairlead_cli.demo.train", str(copy)], check=True, timeout=120)

    assert {path.name for path in copy.iterdir()} == {path.name for path in folder.iterdir()}
    assert json.loads((copy / "training.json").read_text())["recipe"]
    assert (copy / "v1.onnx").stat().st_mtime_ns != (folder / "v1.onnx").stat().st_mtime_ns
