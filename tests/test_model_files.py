"""Control plane and runtime agree on what a model file is, and the runtime finds a backend for each."""

import pytest

from integrations import model_files as control_plane
from serving_runtime.artifacts import model_files as runtime
from serving_runtime.backends import registry

SINGLE = {
    "digits.onnx": ("model.onnx", "onnxruntime"),
    "Digits.ONNX": ("model.onnx", "onnxruntime"),
    "layers.graphdef": ("model.graphdef", "openvino"),
    "net.pt2": ("model.pt2", "pytorch"),
    "fraud.ubj": ("model.ubj", "xgboost"),
    "xgboost.json": ("model.json", "xgboost"),
    "model.json": ("model.json", "xgboost"),
    "model.txt": ("model.txt", "lightgbm"),
    "churn.skops": ("model.skops", "sklearn"),
}


@pytest.mark.parametrize("filename", SINGLE)
def test_a_model_file_is_stored_by_the_name_that_its_backend_looks_for(filename: str) -> None:
    stored, backend = SINGLE[filename]
    assert control_plane.stored_name(filename) == runtime.stored_name(filename) == stored
    assert registry.backend_of({stored, "notes.md"}) == backend
    assert registry.filename_in(backend, {stored, "notes.md"}) == stored


@pytest.mark.parametrize("path", ["model.xml", "model.savedmodel/saved_model.pb", "saved_model.pb", "model.py"])
def test_a_model_of_several_files_is_known_in_its_folder(path: str) -> None:
    assert control_plane.has_model([f"1/{path}", "labels.txt"], "1")
    assert control_plane.has_model([path, "labels.txt"], "")
    assert not control_plane.has_model([f"1/more/{path}", "labels.txt"], "1")
    assert control_plane.stored_name(path.rpartition("/")[2]) == ""
    assert registry.backend_of({path.partition("/")[0], "labels.txt"}) == (
        "python" if path == "model.py" else "openvino"
    )


@pytest.mark.parametrize("filename", ["labels.txt", "config.json", "model.pkl", "onnx", "", ".onnx/x"])
def test_what_is_no_model_file_has_no_name_to_be_stored_by(filename: str) -> None:
    assert control_plane.stored_name(filename) == runtime.stored_name(filename) == ""


def test_both_sides_list_the_same_names() -> None:
    assert control_plane.ACCEPTED == runtime.ACCEPTED
