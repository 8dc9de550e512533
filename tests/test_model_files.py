"""What the registry takes as a model file is what the runtime finds a backend for."""

import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from common.errors import InvalidInput
from integrations.artifacts.store import ArtifactStore, StoredArtifact
from serving_runtime.artifacts import unpack
from serving_runtime.backends import registry
from serving_runtime.common.errors import ModelError
from serving_runtime.shared import model_files

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
    name, backend = SINGLE[filename]
    assert model_files.stored_name(filename) == name
    assert registry.backend_of({name, "notes.md"}, Path("/none")) == backend
    assert registry.filename_in(backend, {name, "notes.md"}) == name


@pytest.mark.parametrize("path", ["model.xml", "model.savedmodel/saved_model.pb", "saved_model.pb", "model.py"])
def test_a_model_of_several_files_is_known_in_its_folder(path: str) -> None:
    assert model_files.has_model([f"1/{path}", "labels.txt"], "1")
    assert model_files.has_model([path, "labels.txt"], "")
    assert not model_files.has_model([f"1/more/{path}", "labels.txt"], "1")
    assert model_files.stored_name(path.rpartition("/")[2]) == ""
    assert registry.backend_of({path.partition("/")[0], "labels.txt"}, Path("/none")) == (
        "python" if path == "model.py" else "openvino"
    )


@pytest.mark.parametrize("filename", ["labels.txt", "config.json", "model.pkl", "onnx", "", ".onnx/x"])
def test_what_is_no_model_file_has_no_name_to_be_stored_by(filename: str) -> None:
    assert model_files.stored_name(filename) == ""


def stored(folder: Path, filename: str, content: bytes) -> StoredArtifact:
    """Have the registry's store keep one file."""
    with ArtifactStore(folder, max_bytes=2**20).begin(filename) as writer:
        writer.write(content)
        return writer.commit()


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any]:
    inputs = np.random.default_rng(1).random((60, 4), dtype="f4")
    return inputs, (inputs[:, 0] > 0.5).astype(int)


def xgboost_file(rows: tuple[Any, Any], to: Path) -> bytes:
    """Return what `Booster.save_model` writes to a file of that name."""
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed: pip install 'fairlead[xgboost]'")
    made = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(*rows), num_boost_round=2)
    made.save_model(to.with_suffix(".json" if to.suffix == ".json" else ".ubj"))
    return to.with_suffix(".json" if to.suffix == ".json" else ".ubj").read_bytes()


def lightgbm_file(rows: tuple[Any, Any], to: Path) -> bytes:
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed: pip install 'fairlead[lightgbm]'")
    made = lightgbm.train({"objective": "binary", "verbose": -1}, lightgbm.Dataset(*rows), num_boost_round=2)
    made.save_model(to)
    return to.read_bytes()


@pytest.mark.parametrize(
    ("filename", "write", "name", "backend"),
    [
        pytest.param("iris_xgb.json", xgboost_file, "model.json", "xgboost", id="JSON of XGBoost"),
        pytest.param("model.bst", xgboost_file, "model.ubj", "xgboost", id="UBJSON of XGBoost, as KServe names it"),
        pytest.param("model.bst", lightgbm_file, "model.txt", "lightgbm", id="LightGBM, as KServe names it"),
    ],
)
def test_what_a_file_holds_tells_what_its_ending_leaves_open(
    filename: str,
    write: Callable[[tuple[Any, Any], Path], bytes],
    name: str,
    backend: str,
    rows: tuple[Any, Any],
    tmp_path: Path,
) -> None:
    content = write(rows, tmp_path / filename)

    kept = stored(tmp_path / "artifacts", filename, content)
    (tmp_path / "came").write_bytes(content)
    came = unpack.unpack(tmp_path / "came", filename, kept.files[name], tmp_path / "unpacked")

    assert kept.files == came
    assert (tmp_path / "unpacked" / name).read_bytes() == content
    assert registry.backend_of(set(came), tmp_path / "unpacked") == backend


def test_model_bst_in_a_folder_is_opened_by_the_library_that_wrote_it(rows: tuple[Any, Any], tmp_path: Path) -> None:
    for write, backend in ((xgboost_file, "xgboost"), (lightgbm_file, "lightgbm")):
        (tmp_path / "model.bst").write_bytes(write(rows, tmp_path / "made"))
        assert registry.backend_of({"model.bst"}, tmp_path) == backend


@pytest.mark.parametrize(
    ("filename", "content"),
    [
        pytest.param("config.json", json.dumps({"learner": "x"}).encode(), id="other JSON"),
        pytest.param("package.json", b'{"version": "1.0.0"}', id="JSON with a version"),
        pytest.param("model.bst", b"binf" + bytes(100), id="XGBoost's binary format of long ago"),
    ],
)
def test_what_holds_no_model_is_refused_by_both_sides(filename: str, content: bytes, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=f"'{filename}' is no model by what is in it: neither JSON"):
        stored(tmp_path / "artifacts", filename, content)
    (tmp_path / "came").write_bytes(content)
    with pytest.raises(ModelError, match="is neither a model"):
        unpack.unpack(tmp_path / "came", filename, "", tmp_path / "unpacked")


@pytest.mark.parametrize(
    "filename", ["iris.pkl", "iris.joblib", "iris.pickle", "model.onnx", "model.skops", "iris.bst"]
)
def test_a_pickle_is_refused_with_the_ways_to_skops_and_onnx(filename: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        stored(tmp_path, filename, pickle.dumps({"coef_": np.zeros(3)}))

    said = caught.value.message
    assert said.startswith(f"'{filename}' is a pickle, which is code and is not taken; ")
    assert "skops.io.dump(model, 'model.skops')" in said
    assert "skl2onnx.to_onnx(model, X[:1])" in said
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_pickle_in_a_folder_is_refused_alike(tmp_path: Path) -> None:
    archive = tmp_path / "iris.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("1/model.pkl", pickle.dumps([1]))
    with pytest.raises(InvalidInput, match=r"'1/model.pkl' in the folder is a pickle.*skops.io.dump"):
        stored(tmp_path / "artifacts", "iris.zip", archive.read_bytes())


def test_the_ways_out_of_a_pickle_work(rows: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skops_io = pytest.importorskip("skops.io", reason="skops is not installed: pip install 'fairlead[sklearn]'")
    linear = pytest.importorskip("sklearn.linear_model")
    skl2onnx = pytest.importorskip("skl2onnx")
    model = linear.LogisticRegression().fit(*rows)
    monkeypatch.chdir(tmp_path)
    names = {
        "skops": type("skops", (), {"io": skops_io}),
        "skl2onnx": skl2onnx,
        "model": model,
        "X": rows[0],
        "Path": Path,
    }

    for command in (
        model_files.WITHOUT_CODE.partition("code: ")[2].partition(", or as")[0],
        model_files.WITHOUT_CODE.partition("ONNX: ")[2],
    ):
        exec(command, names)

    for filename in ("model.skops", "model.onnx"):
        assert list(stored(tmp_path / "artifacts", filename, (tmp_path / filename).read_bytes()).files) == [filename]
