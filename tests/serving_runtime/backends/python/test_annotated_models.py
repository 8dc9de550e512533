"""Models whose signature is in the annotations of `predict`, and explanations."""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, command
from tests.serving_runtime.backends.python.python_repository import output, repository, serving


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, scratch: Path) -> Iterator[ServerProcess]:
    root = repository(tmp_path_factory.mktemp("models"), "weighing", "doubling", "tricks", "countdown")
    onnx_models.mlp(root / "mlp" / "1" / "model.onnx")
    with serving(root, scratch) as process:
        yield process


def weigh(served: ServerProcess, features: list[list[float | str]], **inputs: Any) -> httpx.Response:
    tensors = [{"name": "features", "datatype": "FP32", "shape": [len(features), 3], "data": features}]
    tensors += [
        {"name": name, "datatype": "FP32", "shape": [len(rows), 1], "data": rows} for name, rows in inputs.items()
    ]
    return httpx.post(f"{served.url}/v2/models/weighing/infer", json={"inputs": tensors}, timeout=60)


def test_the_signature_is_what_the_annotations_say(served: ServerProcess) -> None:
    metadata = httpx.get(f"{served.url}/v2/models/weighing", timeout=60).json()
    assert metadata["inputs"] == [
        {"name": "features", "datatype": "FP32", "shape": [-1, 3]},
        {"name": "bias", "datatype": "FP32", "shape": [-1, 1]},
    ]
    assert [(tensor["name"], tensor["datatype"]) for tensor in metadata["outputs"]] == [
        ("score", "FP32"),
        ("label", "BYTES"),
        ("together", "INT64"),
    ]
    config = httpx.get(f"{served.url}/v2/models/weighing/config", timeout=60).json()
    assert config["max_batch_size"] == 8
    assert "dynamic_batching" in config
    assert [tensor["optional"] for tensor in config["input"]] == [False, True]


def test_a_class_answers_rows_and_may_be_left_an_input_out(served: ServerProcess) -> None:
    answer = weigh(served, [[1, 2, 3], [1, 0, 0]])
    assert output(answer, "score") == [321, 1]
    assert output(answer, "label") == ["heavy", "light"]
    assert output(weigh(served, [[1, 0, 0]], bias=[5]), "score") == [6]


def test_a_function_is_a_model_without_batches(served: ServerProcess) -> None:
    body = {"inputs": [{"name": "x", "datatype": "INT32", "shape": [3], "data": [1, 2, 3]}]}
    answer = httpx.post(f"{served.url}/v2/models/doubling/infer", json=body, timeout=60)
    assert output(answer, "output") == [2, 4, 6]


def test_requests_are_joined_and_one_that_fails_fails_alone(served: ServerProcess) -> None:
    given = [[float(number), 0, 0] for number in range(16)] + [[-1e9, 0, 0]]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda row: weigh(served, [row]), given))
    assert [output(answer, "score") for answer in answers[:-1]] == [[float(number)] for number in range(16)]
    assert answers[-1].status_code == 500
    assert answers[-1].json()["error"] == "the model failed: OverflowError: too small"


def test_a_request_that_the_model_refuses_is_the_clients_mistake(served: ServerProcess) -> None:
    answer = weigh(served, [[1e9, 0, 0]])
    assert (answer.status_code, answer.json()["error"]) == (400, "too heavy")


def test_predict_of_v1_asks_python_models(served: ServerProcess) -> None:
    body = {"instances": [{"features": [1, 2, 3]}, {"features": [1, 0, 0]}]}
    answer = httpx.post(f"{served.url}/v1/models/weighing:predict", json=body, timeout=60)
    predictions = answer.json()["predictions"]
    assert [row["label"] for row in predictions] == [["heavy"], ["light"]]


@pytest.mark.feature("V1b")
def test_explain_of_v1_tells_what_the_model_says_of_its_answer(served: ServerProcess) -> None:
    body = {"instances": [{"features": [1, 2, 3]}, {"features": [4, 0, 0]}]}
    for path in ("weighing", "weighing/versions/1"):
        answer = httpx.post(f"{served.url}/v1/models/{path}:explain", json=body, timeout=60)
        assert answer.json() == {
            "explanations": [{"adds": [1, 20, 300], "bias": [0]}, {"adds": [4, 0, 0], "bias": [0]}]
        }


@pytest.mark.parametrize("name", ["mlp", "tricks", "doubling", "countdown"])
def test_a_model_without_explain_says_so(served: ServerProcess, name: str) -> None:
    inputs = {"mlp": [0] * 8, "tricks": {"do": ["pid"]}, "doubling": 1, "countdown": 1}
    body = {"inputs": inputs[name]} if name in ("doubling", "countdown") else {"instances": [inputs[name]]}
    answer = httpx.post(f"{served.url}/v1/models/{name}:explain", json=body, timeout=60)
    assert answer.status_code == 501
    assert answer.json()["error"] == (
        f"model '{name}' does not explain its answers; a model in Python does by a method explain"
    )


def test_explain_of_nobody_is_not_found(served: ServerProcess) -> None:
    answer = httpx.post(f"{served.url}/v1/models/nobody:explain", json={"instances": [1]}, timeout=60)
    assert answer.status_code == 404


@pytest.mark.parametrize(
    ("code", "config", "sentence"),
    [
        pytest.param(
            "def predict(x): return x", "", "predict() has parameter 'x' without an annotation", id="no annotation"
        ),
        pytest.param(
            "from fairlead_python import INT32\ndef predict(x: INT32[0]) -> INT32[1]: ...",
            "",
            "INT32[0]: dims must be numbers >= 1, or -1 for any",
            id="a dimension of nothing",
        ),
        pytest.param(
            "from fairlead_python import INT32\ndef predict(x: INT32[2]) -> INT32[2]: ...",
            "input { name: 'x' data_type: TYPE_INT32 dims: 3 }",
            "input 'x' has dims [3] in config.pbtxt",
            id="a config that says otherwise",
        ),
        pytest.param(
            "x = 1", "", "has neither a class TritonPythonModel, nor a class Model or Transformer, nor", id="no model"
        ),
        pytest.param(
            "from fairlead_python import INT32\ndef predict(x: INT32[2]) -> INT32[2]: ...",
            "model_transaction_policy { decoupled: true }",
            "a decoupled model must be written as a TritonPythonModel",
            id="decoupled",
        ),
    ],
)
def test_a_model_that_cannot_be_served_is_refused_in_one_sentence(
    tmp_path: Path, code: str, config: str, sentence: str
) -> None:
    root = repository(tmp_path / "models", "doubling")
    (root / "doubling" / "1" / "model.py").write_text(code)
    with (root / "doubling" / "config.pbtxt").open("a") as file:
        file.write(config)
    done = subprocess.run(
        command(root, "--allow-python-models=true"), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert sentence in done.stderr.splitlines()[-1]
