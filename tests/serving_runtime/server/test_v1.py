"""The V1 protocol over HTTP: rows and columns in, rows and columns out."""

import base64
from collections.abc import Iterator

import httpx
import pytest
from onnx import TensorProto

from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

pytestmark = pytest.mark.feature("V1a")


@pytest.fixture(scope="module")
def predicting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of `sums` (a, b), `mlp` (x, versions 1 and 3), and of models that repeat their input."""
    root = tmp_path_factory.mktemp("repository")
    onnx_models.add(onnx_models.configure(root / "sums", "max_batch_size: 8") / "1" / "model.onnx")
    mlp = onnx_models.configure(root / "mlp", "version_policy { all { } }")
    onnx_models.mlp(mlp / "1" / "model.onnx", (4, 2))
    onnx_models.mlp(mlp / "3" / "model.onnx", (4, 3))
    onnx_models.identity(root / "text" / "1" / "model.onnx", TensorProto.STRING, ("N", 1))
    onnx_models.identity(root / "cube" / "1" / "model.onnx", TensorProto.FLOAT, (2, 2, 2))
    onnx_models.identity(root / "half" / "1" / "model.onnx", TensorProto.FLOAT16, ("N", 1))
    onnx_models.identity(root / "brain" / "1" / "model.onnx", TensorProto.BFLOAT16, ("N", 1))
    onnx_models.identity(root / "one" / "1" / "model.onnx", TensorProto.FLOAT, ())
    onnx_models.identity(root / "words" / "1" / "model.onnx", TensorProto.STRING, ("N",))
    with server(root, scratch=tmp_path_factory.mktemp("ports")) as process:
        yield process


def ask(process: ServerProcess, path: str, content: object) -> httpx.Response:
    return httpx.post(f"{process.url}/v1/models/{path}", json=content)


def test_rows_of_one_input_and_one_output(predicting: ServerProcess) -> None:
    rows = [[1, 1, 1, 1], [0.5, 0, 0, 0]]
    answer = ask(predicting, "mlp:predict", {"instances": rows, "signature_name": "serving_default"})
    assert answer.status_code == 200
    predictions = answer.json()["predictions"]
    assert [len(row) for row in predictions] == [3, 3]
    flat = [value for row in rows for value in row]
    v2 = httpx.post(
        f"{predicting.url}/v2/models/mlp/infer",
        json={"inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 4], "data": flat}]},
    ).json()
    assert [value for row in predictions for value in row] == v2["outputs"][0]["data"]
    assert ask(predicting, "mlp:predict", {"inputs": rows}).json() == {"outputs": predictions}
    assert len(ask(predicting, "mlp/versions/1:predict", {"instances": rows}).json()["predictions"][0]) == 2


def test_rows_and_columns_of_several_inputs_and_outputs(predicting: ServerProcess) -> None:
    rows = [{"a": [1, 2, 3, 4], "b": [4, 3, 2, 1]}, {"b": [0, 0, 0, 0], "a": [9, 9, 9, 9]}]
    assert ask(predicting, "sums:predict", {"instances": rows}).json() == {
        "predictions": [
            {"sum": [5, 5, 5, 5], "difference": [-3, -1, 1, 3]},
            {"sum": [9, 9, 9, 9], "difference": [9, 9, 9, 9]},
        ]
    }
    columns = {name: [row[name] for row in rows] for name in ("a", "b")}
    assert ask(predicting, "sums:predict", {"inputs": columns}).json() == {
        "outputs": {"sum": [[5, 5, 5, 5], [9, 9, 9, 9]], "difference": [[-3, -1, 1, 3], [9, 9, 9, 9]]}
    }


def test_bytes_as_text_and_as_base64(predicting: ServerProcess) -> None:
    encoded = {"b64": base64.b64encode("Bär".encode()).decode()}
    for rows in ([["Bär"], [encoded]], ["Bär", encoded]):  # with and without the dimension of one element
        assert ask(predicting, "text:predict", {"instances": rows}).json() == {"predictions": [["Bär"], ["Bär"]]}


@pytest.mark.parametrize(
    ("model", "datatype", "shape", "data"),
    [("one", "FP32", [], [1.5]), ("words", "BYTES", [2], ["a", "b"]), ("words", "BYTES", [7], list("abcdefg"))],
)
def test_inputs_of_rank_0_and_1_are_served_as_the_file_says(
    predicting: ServerProcess, model: str, datatype: str, shape: list[int], data: list[object]
) -> None:
    url = f"{predicting.url}/v2/models/{model}"
    assert httpx.get(url).json()["inputs"][0]["shape"] == [-1] * len(shape)
    item = {"name": "x", "datatype": datatype, "shape": shape, "data": data}
    answer = httpx.post(f"{url}/infer", json={"inputs": [item]})
    assert answer.status_code == 200, answer.text
    (output,) = answer.json()["outputs"]
    assert (output["shape"], output["data"]) == (shape, data)
    binary = httpx.post(f"{url}/infer", json={"inputs": [item], "parameters": {"binary_data_output": True}})
    assert binary.status_code == 200
    values = data if shape else data[0]
    assert ask(predicting, f"{model}:predict", {"inputs": values}).json() == {"outputs": values}
    assert httpx.post(f"{url}/generate", json={"x": values}).json()["y"] == values


@pytest.mark.feature("P9")
def test_fp16_and_bf16_are_numbers_both_ways(predicting: ServerProcess) -> None:
    for model, datatype, rounded in (("half", "FP16", 0.099975586), ("brain", "BF16", 0.100097656)):
        item = {"name": "x", "datatype": datatype, "shape": [2, 1], "data": [0.1, -2]}
        answer = httpx.post(f"{predicting.url}/v2/models/{model}/infer", json={"inputs": [item]})
        assert answer.status_code == 200, answer.text
        (output,) = answer.json()["outputs"]
        assert (output["datatype"], output["data"]) == (datatype, [rounded, -2])
        assert ask(predicting, f"{model}:predict", {"instances": [[0.1], [-2]]}).json() == {
            "predictions": [[rounded], [-2]]
        }
        generated = httpx.post(f"{predicting.url}/v2/models/{model}/generate", json={"x": 0.1})
        assert generated.json()["y"] == rounded


def test_a_model_without_a_batch_dimension_is_asked_by_columns(predicting: ServerProcess) -> None:
    cube = [[[1.5, 2], [3, 4]], [[5, 6], [7, 8]]]
    assert ask(predicting, "cube:predict", {"inputs": cube}).json() == {"outputs": cube}
    assert ask(predicting, "cube:predict", {"inputs": {"x": cube}}).json() == {"outputs": cube}


@pytest.mark.parametrize(
    ("path", "content", "status", "sentence"),
    [
        ("mlp:predict", {}, 400, "'instances', which are rows, or 'inputs'"),
        ("mlp:predict", {"instances": [[1]], "inputs": [[1]]}, 400, "'instances', which are rows, or 'inputs'"),
        ("mlp:predict", {"instances": []}, 400, "an array that is not empty"),
        ("mlp:predict", {"instances": "x"}, 400, "an array that is not empty"),
        ("mlp:predict", {"instances": [[1, 2, 3]]}, 400, "unexpected shape for input 'x'"),
        ("mlp:predict", {"instances": [[1, 2, 3, 4], [1, 2]]}, 400, "not nested as its shape"),
        ("mlp:predict", {"instances": [["a"] * 4]}, 400, "FP32 data must be numbers"),
        ("mlp:predict", {"instances": [[[]]]}, 400, "unexpected shape for input 'x'"),
        ("mlp:predict", {"instances": [{"z": [1]}]}, 400, "has no input 'z'; its inputs are x"),
        ("mlp:predict", {"instances": [[1] * 4], "signature_name": "other"}, 404, "has no signature 'other'"),
        ("mlp:predict", {"inputs": {}}, 400, "input 'x' is missing"),
        ("sums:predict", {"instances": [[1] * 4]}, 400, "has several inputs, name each: a, b"),
        ("sums:predict", {"instances": [{"a": [1], "b": [1]}, {"a": [1]}]}, 400, "an object of the same inputs: a, b"),
        ("sums:predict", {"instances": [{"a": [1] * 4, "b": [1] * 4}] * 9}, 400, "batch-size must be <= 8"),
        ("text:predict", {"instances": [{"b64": "?"}]}, 400, "not base64"),
        ("text:predict", {"instances": [1]}, 400, "must be strings or"),
        ("half:predict", {"instances": [[1e5]]}, 400, "a number that does not fit FP16"),
        ("nobody:predict", {"instances": [[1]]}, 404, "unknown model 'nobody'"),
        ("mlp/versions/9:predict", {"instances": [[1]]}, 404, "has no version '9'"),
        ("mlp:classify", {"examples": []}, 501, "predict and explain are offered"),
        ("mlp/versions/1:explain", {"instances": [[1]]}, 501, "does not explain its answers"),
        ("mlp:else", {"instances": [[1]]}, 405, "takes GET only"),
    ],
)
def test_what_cannot_be_predicted_is_told(
    predicting: ServerProcess, path: str, content: object, status: int, sentence: str
) -> None:
    answer = ask(predicting, path, content)
    assert answer.status_code == status, answer.text
    assert sentence in answer.json()["error"]


def test_models_and_their_versions(predicting: ServerProcess) -> None:
    def get(path: str) -> httpx.Response:
        return httpx.get(f"{predicting.url}/v1/models{path}")

    assert get("").json() == {"models": ["brain", "cube", "half", "mlp", "one", "sums", "text", "words"]}
    status = get("/mlp").json()
    assert (status["name"], status["ready"]) == ("mlp", True)
    assert [(entry["version"], entry["state"]) for entry in status["model_version_status"]] == [
        ("1", "AVAILABLE"),
        ("3", "AVAILABLE"),
    ]
    assert [entry["version"] for entry in get("/mlp/versions/1").json()["model_version_status"]] == ["1"]
    assert get("/nobody").status_code == 404
    assert get("/mlp/versions/2").status_code == 404
